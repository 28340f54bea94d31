"""Spark DataFrames as tables: how a session registers them, so that DataFusion can plan over them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import datafusion
import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import UserError
from sparkfusion.ids import TableId
from sparkfusion.plan.sources import object_path
from sparkfusion.plan.table_parts import TableHint, mark_tables
from sparkfusion.plan.wire import PlanNode
from sparkfusion.runner.base import AdoptedTable
from sparkfusion.session.placeholders import Placeholders
from sparkfusion.session.session_schema import SessionSchema
from sparkfusion.session.sql_names import quote_name

_BYTES_OF_A_TEXT = 20  # Spark's own guess for values whose size is not fixed


def with_sizes(table: AdoptedTable, rows: int | None, bytes: int | None) -> AdoptedTable:
    """The table with the sizes that a user gives, instead of Spark's guess."""
    for name, value in (("rows", rows), ("bytes", bytes)):
        if value is not None and value < 0:
            raise UserError(
                f"{name}={value!r} must be a number of at least 0", hint=f"leave {name} out if you do not know it"
            )
    if bytes is None and rows is not None:
        bytes = rows * sum(_width(kind) for kind in table.schema.types)
    return table if bytes is None else replace(table, bytes=bytes)


def _width(kind: pa.DataType) -> int:
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return _BYTES_OF_A_TEXT


class AdoptedTables:
    """The tables of one session whose rows come from Spark. Placeholder files stand for them.

    Each is forgotten when its table is gone and no query reads it any more.
    """

    def __init__(self, schema: SessionSchema) -> None:
        self._placeholders = Placeholders("adopted-tables", schema)
        self._hints: dict[TableId, TableHint] = {}
        self._releases: dict[TableId, Callable[[TableId], object]] = {}
        self._reasons: dict[TableId, str] = {}

    def register(
        self, context: SessionContext, name: str, table: AdoptedTable, release: Callable[[TableId], object]
    ) -> None:
        """Register a table. `release` is called when nothing reads it any more, on any thread."""
        self._releases[table.id] = release
        self._hints[table.id] = TableHint(name, table.bytes, table.parts)
        self._placeholders.register(context, name, table.id, table.schema, table.parts, self._forget)

    def read(
        self, name: str, table: AdoptedTable, release: Callable[[TableId], object], reason: str
    ) -> datafusion.DataFrame:
        """All rows of a table, without registering it. `reason`: why they come through Spark, for `explain`."""
        self._releases[table.id] = release
        self._hints[table.id] = TableHint(name, table.bytes, table.parts)
        self._reasons[table.id] = reason
        shown = quote_name(name)
        return self._placeholders.place(SessionContext(), shown, table.id, table.schema, table.parts, self._forget)[1]

    def describe(self, dataframe: datafusion.DataFrame) -> list[str]:
        """A line for each table that a query reads and that was not registered: why its rows come through Spark."""
        found = [table for table in self._placeholders.tables_in(dataframe) if table in self._reasons]
        return [f"table {self._hints[table].name}: through Spark, because {self._reasons[table]}" for table in found]

    def _forget(self, table: TableId) -> None:
        del self._hints[table]
        self._reasons.pop(table, None)
        self._releases.pop(table)(table)

    def mark(self, root: PlanNode) -> bool:
        """Replace scans of these tables by placeholders that can be encoded, in place. Returns whether it found any."""
        home = self._placeholders.home
        return home is not None and mark_tables(root, str(home), self._hints)

    def small(self, most_bytes: int) -> set[TableId]:
        """The tables that are known to be no larger than that."""
        return {table for table, hint in list(self._hints.items()) if hint.bytes <= most_bytes}

    def read_by(self, dataframe: datafusion.DataFrame) -> list[str]:
        """The names of such tables that DataFusion's own plan of the query reads."""
        home = self._placeholders.home
        if home is None:
            return []
        text = dataframe.execution_plan().display_indent()
        found = re.findall(re.escape(object_path(str(home))) + r"/(\d+)/", text)
        return [self._hints[int(table)].name for table in dict.fromkeys(found)]

    def close(self) -> None:
        self._placeholders.close()
