"""Tables whose rows the runner brings: how a session registers them, so that DataFusion can plan over them."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import datafusion
import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import UserError
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.plan.sources import object_path
from sparkfusion.plan.tables import TableHint, TableId, mark_tables
from sparkfusion.plan.wire import PlanNode
from sparkfusion.runner.base import HostTable

_PLACEHOLDER = b"-"  # one byte: DataFusion skips empty files, and could split longer ones between tasks


_BYTES_OF_A_TEXT = 20  # Spark's own guess for values whose size is not fixed


def sized(table: HostTable, rows: int | None, bytes: int | None) -> HostTable:
    """The table with the sizes that a user gives, instead of the host's guess."""
    for name, value in (("rows", rows), ("bytes", bytes)):
        if value is not None and value < 0:
            raise UserError(f"{name}={value!r} must be a number from 0", hint=f"leave {name} out if you do not know it")
    if bytes is None and rows is not None:
        bytes = rows * sum(_width(kind) for kind in table.schema.types)
    return table if bytes is None else replace(table, bytes=bytes)


def _width(kind: pa.DataType) -> int:
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return _BYTES_OF_A_TEXT


class HostTables:
    """Placeholder files of one session. They are no Arrow files: reading them fails, instead of finding no rows."""

    def __init__(self) -> None:
        self._home: OwnedDirectory | None = None
        self._hints: dict[TableId, TableHint] = {}

    def register(self, context: SessionContext, name: str, table: HostTable) -> None:
        if self._home is None:
            self._home = OwnedDirectory("host-tables", Path(tempfile.gettempdir()))
        directory = self._home.path / str(table.id)
        directory.mkdir()
        for part in range(table.parts):
            (directory / f"{part:06d}.arrow").write_bytes(_PLACEHOLDER)
        context.register_arrow(name, str(directory), schema=table.schema)
        self._hints[table.id] = TableHint(name, table.bytes, table.parts)

    def mark(self, root: PlanNode) -> bool:
        """Make scans of these tables placeholders that travel, in place. Whether the plan has any."""
        return self._home is not None and mark_tables(root, str(self._home.path), self._hints)

    def small(self, most_bytes: int) -> set[TableId]:
        """The tables that are said to be no larger than that."""
        return {table for table, hint in self._hints.items() if hint.bytes <= most_bytes}

    def read_by(self, frame: datafusion.DataFrame) -> list[str]:
        """The names of such tables that DataFusion's own plan of the frame reads."""
        if self._home is None:
            return []
        text = frame.execution_plan().display_indent()
        found = re.findall(re.escape(object_path(str(self._home.path))) + r"/(\d+)/", text)
        return [self._hints[int(table)].name for table in dict.fromkeys(found)]

    def close(self) -> None:
        if self._home is not None:
            self._home.close()
