"""A query whose whole plan runs in one task, and that runs again, split, if that task lacks memory."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa

from sparkfusion.errors import QueryCancelledError, ResourceError, is_memory_shortage
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.plan.stage import Head, StageGraph
from sparkfusion.runner.base import RunningJob
from sparkfusion.session.row_window import RowWindow
from sparkfusion.worker.task import TaskReport

SPLIT_HINT = "SET sparkfusion.task_cores = 1: then every task has one partition, and spills to disk"

StartSplit = Callable[[ResourceError], tuple[RunningJob, Head]]
"""Plans and starts the same query, split. Raises the error that it is given if that is not possible."""


class WholeJob:
    """The same handle as that of any job. As long as the consumer has no row, a run that lacks memory can be replaced.

    Args:
        job: the first run. Its frames are all rows of the query.
        start_split: starts the second one, on the consumer's thread, when the first one is closed.
    """

    def __init__(self, job: RunningJob, start_split: StartSplit) -> None:
        self._job = job
        self._start_split = start_split
        self._window: RowWindow | None = None
        self._given = False
        self._stopped: str | None = None
        self._lock = threading.Lock()

    def next_frame(self) -> pa.RecordBatch | None:
        if self._window is not None:
            return self._next_of_split(self._window)
        try:
            frame = self._job.next_frame()
        except ResourceError as error:
            if not is_memory_shortage(error):
                raise
            if self._given:
                error.hint = SPLIT_HINT
                raise
            return self._next_of_split(self._run_split(error))
        self._given = self._given or (frame is not None and frame.num_rows > 0)
        return frame

    def _run_split(self, error: ResourceError) -> RowWindow:
        self._job.close()
        if self._stopped is not None:
            raise QueryCancelledError(self._stopped)
        job, head = self._start_split(error)
        self._window = RowWindow(head)
        with self._lock:
            self._job = job
            stopped = self._stopped
        if stopped is not None:  # while it was planned: nobody has told the new job
            job.cancel(stopped)
        return self._window

    def _next_of_split(self, window: RowWindow) -> pa.RecordBatch | None:
        frame = self._job.next_frame() if not window.is_full else None
        return window.cut(frame) if frame is not None else None

    def cancel(self, reason: str = "the query was cancelled") -> None:
        self._stop(reason).cancel(reason)

    def close(self) -> None:
        self._stop("the query was closed while its rows were read").close()

    def _stop(self, reason: str) -> RunningJob:
        """The job that runs now. No other one continues after this."""
        with self._lock:
            self._stopped = self._stopped or reason
            return self._job

    def reports(self) -> list[TaskReport]:
        return self._job.reports()

    def graph(self) -> StageGraph | None:
        return self._job.graph()

    def feeds(self) -> list[FeedStats]:
        return self._job.feeds()
