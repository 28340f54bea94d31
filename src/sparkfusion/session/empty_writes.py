"""A write of no rows on a single node: DataFusion writes no file into a directory then, so the columns would be
lost."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.runner.base import RunningJob
from sparkfusion.worker.task import TaskReport


class FilledJob:
    """A job whose rows are counts of what it wrote. If nothing was written, `write_empty` is called before it ends."""

    def __init__(self, job: RunningJob, write_empty: Callable[[], object]) -> None:
        self._job = job
        self._write_empty = write_empty
        self._rows = 0
        self._over = False

    def next_frame(self) -> pa.RecordBatch | None:
        frame = self._job.next_frame()
        if frame is not None:
            self._rows += pc.sum(frame.column(0)).as_py() or 0
        elif not self._over:
            self._over = True
            if self._rows == 0:
                self._write_empty()
        return frame

    def cancel(self, reason: str = "the query was cancelled") -> None:
        self._job.cancel(reason)

    def close(self) -> None:
        self._job.close()

    def reports(self) -> list[TaskReport]:
        return self._job.reports()

    def feeds(self) -> list[FeedStats]:
        return self._job.feeds()
