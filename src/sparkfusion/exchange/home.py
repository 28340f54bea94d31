"""The directories of one query that tasks in other processes write to."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sparkfusion.errors import StoreFullError
from sparkfusion.exchange.owned import OwnedDirectory, remove_remains
from sparkfusion.ids import QueryId


class SharedHome:
    """One directory below `base`, made now. `close` removes it, even while a cancelled task still writes.

    Spark kills the Python worker of a cancelled task only after two seconds. So the directory is renamed before it is
    removed: a task that still has the old name can create nothing under it.
    """

    def __init__(self, query: QueryId, base: Path) -> None:
        base = base.absolute()
        if not os.access(base, os.W_OK):
            raise StoreFullError(
                f"intermediate data cannot be written to {str(base)!r}: no such directory, or no permission",
                hint="set sparkfusion.store_dir to a directory that exists and may be written",
            )
        self._owned = OwnedDirectory(query, base)
        self.path = self._owned.path / "frames"
        self.path.mkdir()

    @staticmethod
    def is_gone(path: Path) -> bool:
        """Whether the directory with this `path` was closed. If a late task made it again, it is removed."""
        return remove_remains(path.parent)

    def close(self) -> None:
        """Remove everything. Idempotent."""
        with suppress(FileNotFoundError):
            self.path.rename(self.path.with_name("gone"))
        self._owned.close()
