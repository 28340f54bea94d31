"""What a worker has done since it started, in numbers: its metrics."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sparkfusion.errors import QueryCancelledError
from sparkfusion.worker.server.version import WorkerInfo, WorkerStatus
from sparkfusion.worker.task import TaskReport


@dataclass(frozen=True)
class TaskTally:
    """Attempts at tasks, of all queries together. `running`: those that have a slot now. The rest only grows.

    Attributes:
        rows, bytes, seconds: of the attempts that finished: what they wrote, and how long they ran.
        fetched_bytes: what they had to fetch from other workers.
    """

    running: int = 0
    finished: int = 0
    failed: int = 0
    cancelled: int = 0
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    fetched_bytes: int = 0


@dataclass(frozen=True)
class WorkerMetrics:
    """A worker at one moment. It names no query, table or file: anyone who reaches the port may read it.

    Attributes:
        memory_bytes: what the worker and its child processes hold now.
        memory_limit: what the machine, or its container, has for them.
        started_at: seconds since 1970.
    """

    info: WorkerInfo
    status: WorkerStatus
    tasks: TaskTally
    memory_bytes: int
    memory_limit: int
    started_at: float


class TaskCounter:
    """Counts the attempts of one worker. Any thread may call any method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tally = TaskTally()

    @property
    def tally(self) -> TaskTally:
        with self._lock:
            return self._tally

    @contextmanager
    def count_running(self) -> Iterator[None]:
        self._add(running=1)
        try:
            yield
        finally:
            self._add(running=-1)

    def note_end(self, report: TaskReport) -> None:
        fetched = sum(each.bytes for each in report.fetched)
        size, seconds = report.manifest.bytes, report.seconds
        self._add(finished=1, rows=report.rows, bytes=size, fetched_bytes=fetched, seconds=seconds)

    def note_failure(self, error: BaseException) -> None:
        if isinstance(error, QueryCancelledError):
            self._add(cancelled=1)
        else:
            self._add(failed=1)

    def _add(self, **more: float) -> None:
        with self._lock:
            sums = {name: getattr(self._tally, name) + value for name, value in more.items()}
            self._tally = replace(self._tally, **sums)
