"""Tables whose rows the runner brings: how a session registers them, so that DataFusion can plan over them."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import datafusion
from datafusion import SessionContext

from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.plan.sources import object_path
from sparkfusion.plan.tables import TableHint, TableId, mark_tables
from sparkfusion.plan.wire import PlanNode
from sparkfusion.runner.base import HostTable

_PLACEHOLDER = b"-"  # one byte: DataFusion skips empty files, and could split longer ones between tasks


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
        self._hints[table.id] = TableHint(name, max(1, table.bytes // table.parts))

    def mark(self, root: PlanNode) -> bool:
        """Make scans of these tables placeholders that travel, in place. Whether the plan has any."""
        return self._home is not None and mark_tables(root, str(self._home.path), self._hints)

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
