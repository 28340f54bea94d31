"""A query that has not run. Session and DataFrame make it; the engine plans and starts it."""

from __future__ import annotations

from dataclasses import dataclass

import datafusion
import pyarrow as pa

from sparkfusion.session.changes import Change
from sparkfusion.session.write_modes import WriteMode


@dataclass(frozen=True)
class LazyQuery:
    """A query, or a statement that writes, which has not run.

    Attributes:
        inner: the query or statement, as DataFusion has it.
        copies: set if it writes rows to files.
        changes: set if it changes a table.
        text: the SQL that the user wrote; empty if it was made by methods of a DataFrame.
    """

    inner: datafusion.DataFrame
    copies: Copy | None = None
    changes: Change | None = None
    text: str = ""

    @property
    def writes(self) -> bool:
        """Whether running it changes something: files, or a table."""
        return self.copies is not None or self.changes is not None

    @property
    def schema(self) -> pa.Schema:
        return self.inner.schema()

    @property
    def source(self) -> LazyQuery:
        """The query whose rows it writes, if that runs like any other query; otherwise itself."""
        if self.changes is not None and self.changes.into is not None:
            return LazyQuery(self.changes.reads[0])
        return self.copies.source if self.copies is not None else self


@dataclass(frozen=True)
class Copy:
    """Where the rows of `source` are written: `tail` is the rest of the COPY statement."""

    source: LazyQuery
    tail: str
    mode: WriteMode | None = None
