"""Jobs that write the rows of a query somewhere, and return how many they wrote."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

import pyarrow as pa

from sparkfusion.errors import QueryCancelledError
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.plan.stage import StageGraph
from sparkfusion.session.query import RunningQuery
from sparkfusion.worker.task import TaskReport


class CountingJob(ABC):
    """A job whose one frame is the count of written rows. Its query, `running`, starts with the first `next_frame`.

    One thread calls `next_frame`, any thread `cancel` and `close`: also while the query is being started.
    """

    def __init__(self) -> None:
        self.running: RunningQuery | None = None
        self._done = False
        self._stopped: str | None = None
        self._lock = threading.Lock()

    @abstractmethod
    def write(self) -> pa.RecordBatch:
        """`begin` the query and write its rows. Returns the frame."""

    def begin(self, start: Callable[[], RunningQuery]) -> RunningQuery:
        """Start the query of this job; called by `write`. If the job was stopped meanwhile, the query ends here."""
        running = start()
        with self._lock:
            self.running = running
            stopped = self._stopped
        if stopped is not None:  # nobody has told the new query
            running.close()
            raise QueryCancelledError(stopped)
        return running

    def check_stopped(self) -> None:
        """Called by `write` before it makes the rows visible: the query may have ended before it was stopped."""
        if self._stopped is not None:
            raise QueryCancelledError(self._stopped)

    def next_frame(self) -> pa.RecordBatch | None:
        if self._done:
            return None
        self._done = True
        self.check_stopped()
        return self.write()

    def cancel(self, reason: str = "the query was cancelled") -> None:
        if (running := self._stop(reason)) is not None:
            running.cancel()

    def close(self) -> None:
        if (running := self._stop("the query was closed before its rows were written")) is not None:
            running.close()

    def _stop(self, reason: str) -> RunningQuery | None:
        """The query that runs now. No other one continues after this."""
        with self._lock:
            self._stopped = self._stopped or reason
            return self.running

    def reports(self) -> list[TaskReport]:
        return self.running.reports() if self.running is not None else []

    def graph(self) -> StageGraph | None:
        return self.running.graph() if self.running is not None else None

    def feeds(self) -> list[FeedStats]:
        return self.running.feeds() if self.running is not None else []


def count_frame(rows: int) -> pa.RecordBatch:
    return pa.record_batch({"count": pa.array([rows], pa.uint64())})
