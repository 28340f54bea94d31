"""The local store: frame files on this machine, in memory-backed storage while they fit a budget, on disk beyond it."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path

from sparkfusion.errors import StoreFullError
from sparkfusion.ids import QueryId, TaskKey

_SHARED_MEMORY = Path("/dev/shm")
PREFIX = "sparkfusion-"


class LocalStore:
    """Directories of one query. Threads of that query may use it at the same time; `close` removes everything.

    The budget counts bytes as they are written. A file that was started in memory stays there; the next one goes
    to disk, so the budget is exceeded by one file per writer at most.
    """

    def __init__(self, query: QueryId, *, memory_budget: int, directory: str = "") -> None:
        self._lock = threading.Lock()
        self._memory_left = memory_budget
        name = f"{PREFIX}{os.getpid()}-{query}-"
        base = directory or tempfile.gettempdir()
        try:
            self._disk = Path(tempfile.mkdtemp(prefix=name, dir=base))
        except OSError as error:
            raise StoreFullError(
                f"cannot create a directory for frames in {base!r}: {error.strerror}",
                hint="set sparkfusion.store_dir to a directory that exists and may be written",
            ) from error
        self._memory = self._make_memory_directory(name) if memory_budget > 0 else None

    @staticmethod
    def _make_memory_directory(name: str) -> Path | None:
        if not os.access(_SHARED_MEMORY, os.W_OK):
            return None
        return Path(tempfile.mkdtemp(prefix=name, dir=_SHARED_MEMORY))

    @property
    def directory(self) -> Path:
        """The part on disk."""
        return self._disk

    def has_memory(self) -> bool:
        with self._lock:
            return self._memory is not None and self._memory_left > 0

    def attempt_directory(self, key: TaskKey, *, in_memory: bool) -> Path:
        """The private directory of one attempt, created on first use."""
        base = self._memory if in_memory and self._memory is not None else self._disk
        made = base / f"{key.stage}-{key.task}-{key.attempt}"
        made.mkdir(exist_ok=True)
        return made

    def took(self, size: int) -> None:
        """Count bytes written to memory-backed storage."""
        with self._lock:
            self._memory_left -= size

    def discard(self, key: TaskKey) -> None:
        """Remove what one attempt wrote. Idempotent."""
        for base in (self._disk, self._memory):
            if base is None:
                continue
            gone = base / f"{key.stage}-{key.task}-{key.attempt}"
            if base is self._memory and gone.exists():
                self.took(-sum(file.stat().st_size for file in gone.iterdir()))
            shutil.rmtree(gone, ignore_errors=True)

    def close(self) -> None:
        """Remove everything. Idempotent; called when the query has ended in any way."""
        for base in (self._memory, self._disk):
            if base is not None:
                shutil.rmtree(base, ignore_errors=True)
