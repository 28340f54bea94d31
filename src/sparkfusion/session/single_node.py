"""A query that is not distributed: DataFusion runs it whole, in this process, as its user configured it."""

from __future__ import annotations

import datafusion
import pyarrow as pa

from sparkfusion.errors import QueryCancelledError
from sparkfusion.worker.task import TaskReport


class SingleNodeJob:
    """The same handle as a distributed job has, over DataFusion's own stream. Ctrl-C is DataFusion's to notice."""

    def __init__(self, frame: datafusion.DataFrame) -> None:
        self._stream: datafusion.RecordBatchStream | None = frame.execute_stream()
        self._cancelled: str | None = None

    def next_frame(self) -> pa.RecordBatch | None:
        if self._cancelled is not None:
            raise QueryCancelledError(self._cancelled)
        found = next(self._stream, None) if self._stream is not None else None
        return None if found is None else found.to_pyarrow()

    def cancel(self, reason: str = "the query was cancelled") -> None:
        self._cancelled = reason

    def close(self) -> None:
        self._stream = None

    def reports(self) -> list[TaskReport]:
        return []
