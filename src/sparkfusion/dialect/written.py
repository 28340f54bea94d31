"""A query that is written in DataFusion's dialect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from sparkfusion.dialect.refusals import wrong
from sparkfusion.dialect.scopes import quote
from sparkfusion.dialect.typed_sql import Typed


@dataclass(frozen=True)
class OutputColumn:
    """A column of a query: its name for the user, its name in the text, its type."""

    name: str
    own_name: str
    type: pa.DataType


@dataclass(frozen=True)
class Written:
    """The text of a query and its columns."""

    sql: str
    columns: Sequence[OutputColumn]

    def only_column(self, what: str) -> Typed:
        """The only column of a subquery, as the text `"q"."name"`."""
        if len(self.columns) != 1:
            raise wrong(f"{what} has {len(self.columns)} columns, where one is expected")
        (column,) = self.columns
        return Typed(f'"q".{quote(column.own_name)}', column.type)
