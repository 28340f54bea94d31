"""The local store: frame files on this machine, in memory-backed storage while they fit a budget, on disk beyond it."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

from sparkfusion.errors import StoreFullError
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.ids import QueryId, TaskKey

_SHARED_MEMORY = Path("/dev/shm")


class LocalStore:
    """The frame files of one query. Its threads may use it at the same time; `close` removes everything.

    The budget counts bytes as they are written. A file that was started in memory ends when the budget is used up and
    the next one goes to disk, so the budget is exceeded by one frame per writer at most.
    """

    def __init__(self, query: QueryId, *, memory_budget: int, directory: str = "") -> None:
        self._query = query
        self._lock = threading.Lock()
        self._memory_left = memory_budget if os.access(_SHARED_MEMORY, os.W_OK) else 0
        self._memory: OwnedDirectory | None = None
        self._disk: OwnedDirectory | None = None
        self.base = Path(directory or tempfile.gettempdir())
        if not os.access(self.base, os.W_OK):
            raise StoreFullError(
                f"frames cannot be written to {str(self.base)!r}: no such directory, or no permission",
                hint="set sparkfusion.store_dir to a directory that exists and may be written",
            )

    def has_memory(self) -> bool:
        with self._lock:
            return self._memory_left > 0

    def attempt_directory(self, key: TaskKey, *, in_memory: bool) -> Path:
        """The private directory of one attempt, created on first use."""
        made = self._home(in_memory=in_memory).path / _name(key)
        made.mkdir(exist_ok=True)
        return made

    def took(self, size: int) -> None:
        """Count bytes written to memory-backed storage."""
        with self._lock:
            self._memory_left -= size

    def discard(self, key: TaskKey) -> None:
        """Remove what one attempt wrote. Idempotent."""
        for home in (self._memory, self._disk):
            gone = home.path / _name(key) if home is not None else None
            if gone is None or not gone.exists():
                continue
            for file in gone.iterdir():
                if home is self._memory:
                    self.took(-file.stat().st_size)
                file.unlink()
            gone.rmdir()

    def close(self) -> None:
        """Remove everything. Idempotent; called when the query has ended in any way."""
        for home in (self._memory, self._disk):
            if home is not None:
                home.close()

    def _home(self, *, in_memory: bool) -> OwnedDirectory:
        with self._lock:
            if in_memory:
                self._memory = self._memory or OwnedDirectory(self._query, _SHARED_MEMORY)
                return self._memory
            self._disk = self._disk or OwnedDirectory(self._query, self.base)
            return self._disk


def _name(key: TaskKey) -> str:
    return f"{key.stage}-{key.task}-{key.attempt}"
