"""The rows of a query from row `skip` on, and at most `fetch` of them."""

from __future__ import annotations

import pyarrow as pa

from sparkfusion.plan.stage import Head


class RowWindow:
    """Cuts the frames of a head's one gather, as they come, to the rows that the head lets through."""

    def __init__(self, head: Head) -> None:
        self._skip = head.skip
        self._left = head.fetch

    @property
    def is_full(self) -> bool:
        """Whether no more rows are wanted."""
        return self._left == 0

    def cut(self, frame: pa.RecordBatch) -> pa.RecordBatch:
        if self._skip:
            dropped = min(self._skip, frame.num_rows)
            self._skip -= dropped
            frame = frame.slice(dropped)
        if self._left is not None:
            frame = frame.slice(0, self._left)
            self._left -= frame.num_rows
        return frame
