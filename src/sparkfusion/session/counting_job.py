"""Jobs that write the rows of a query somewhere, and tell how many they were."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa

from sparkfusion.errors import QueryCancelledError
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.plan.stage import StageGraph
from sparkfusion.session.query import RunningQuery
from sparkfusion.worker.task import TaskReport


class CountingJob(ABC):
    """A job whose one frame is the count of written rows. Its query, `running`, starts with the first `next_frame`."""

    def __init__(self) -> None:
        self.running: RunningQuery | None = None
        self._done = False
        self._cancelled: str | None = None

    @abstractmethod
    def write(self) -> pa.RecordBatch:
        """Start the query and write its rows. Returns the frame."""

    def check_cancelled(self) -> None:
        if self._cancelled is not None:
            raise QueryCancelledError(self._cancelled)

    def next_frame(self) -> pa.RecordBatch | None:
        if self._done:
            return None
        self._done = True
        self.check_cancelled()
        return self.write()

    def cancel(self, reason: str = "the query was cancelled") -> None:
        self._cancelled = reason
        if self.running is not None:
            self.running.cancel()

    def close(self) -> None:
        if self.running is not None:
            self.running.close()

    def reports(self) -> list[TaskReport]:
        return self.running.reports() if self.running is not None else []

    def graph(self) -> StageGraph | None:
        return self.running.graph() if self.running is not None else None

    def feeds(self) -> list[FeedStats]:
        return self.running.feeds() if self.running is not None else []


def count_frame(rows: int) -> pa.RecordBatch:
    return pa.record_batch({"count": pa.array([rows], pa.uint64())})
