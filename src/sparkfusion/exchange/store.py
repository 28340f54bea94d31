"""Stores: where frame files are kept. In memory-backed storage while they fit a budget, then on disk."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from abc import ABC, abstractmethod
from pathlib import Path

from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.owned import OwnedDirectory, check_store
from sparkfusion.ids import QueryId, TaskKey

SHARED_MEMORY = Path("/dev/shm")
_RESERVE_BYTES = 64 * 1024 * 1024


class MemoryBudget:
    """Bytes of memory-backed storage that are left for frames. Any thread may call any method."""

    def __init__(self, size: int) -> None:
        self._lock = threading.Lock()
        self._left = size if os.access(SHARED_MEMORY, os.W_OK) else 0

    def take(self, size: int) -> None:
        """Count bytes that were written; a negative size gives bytes back."""
        with self._lock:
            self._left -= size

    @property
    def left(self) -> int:
        return self._left

    def is_left(self) -> bool:
        """Whether the next frame may go to memory-backed storage: the budget is not used up, and there is room for
        other programs."""
        return self._left > 0 and _free_memory() > _RESERVE_BYTES


class FrameStore(ABC):
    """The frame files of tasks: a private directory for each attempt, below one directory in memory and one on disk.

    Threads may use it at the same time. The budget counts bytes as they are written. When the budget is used up, a file
    in memory is closed and the next file goes to disk, so the budget is exceeded by at most one frame per writer.
    """

    def __init__(self, memory: MemoryBudget, base: Path) -> None:
        self.base = base
        self._memory = memory
        self._lock = threading.Lock()
        self._taken: dict[TaskKey, int] = {}

    @abstractmethod
    def _home(self, *, in_memory: bool) -> Path:
        """The directory that holds the attempts' directories; called under the lock, exists afterwards."""

    def has_memory(self) -> bool:
        """Whether the next frame may go to memory-backed storage."""
        return self._memory.is_left()

    def took(self, key: TaskKey, size: int) -> None:
        """Count bytes that an attempt wrote to memory-backed storage; `discard` gives them back."""
        self._memory.take(size)
        with self._lock:
            self._taken[key] = self._taken.get(key, 0) + size

    def attempt_directory(self, key: TaskKey, *, in_memory: bool) -> Path:
        """The private directory of one attempt, created on first use."""
        with self._lock:
            made = self._home(in_memory=in_memory) / _name(key)
        made.mkdir(exist_ok=True)
        return made

    def discard(self, key: TaskKey) -> None:
        """Remove the files of one attempt. Idempotent; safe while the attempt is still ending."""
        with self._lock:
            self._memory.take(-self._taken.pop(key, 0))
            homes = self._existing_homes()
        for home in homes:
            shutil.rmtree(home / _name(key), ignore_errors=True)

    @abstractmethod
    def _existing_homes(self) -> list[Path]:
        """The directories that may contain files."""


class LocalFrameStore(FrameStore):
    """A store of one query in this process, which owns it: `close` removes everything. It may share its budget."""

    def __init__(self, query: QueryId, *, memory_budget: int | MemoryBudget, directory: str = "") -> None:
        memory = MemoryBudget(memory_budget) if isinstance(memory_budget, int) else memory_budget
        super().__init__(memory, Path(directory or tempfile.gettempdir()).absolute())
        self._query = query
        self._homes: dict[bool, OwnedDirectory] = {}
        self._closed = False
        check_store(self.base)

    def close(self) -> None:
        """Remove everything. Idempotent; called when the query has ended in any way. A task that still runs can write
        nothing more."""
        with self._lock:
            self._closed = True
            homes = list(self._homes.values())
        for home in homes:
            home.close()

    def homes(self) -> tuple[str, str]:
        """The directories in memory and on disk, for another process that writes here instead of this one."""
        with self._lock:
            in_memory = str(self._home(in_memory=True)) if self._memory.is_left() else ""
            return in_memory, str(self._home(in_memory=False))

    def _home(self, *, in_memory: bool) -> Path:
        if self._closed:
            raise ChannelClosedError
        if in_memory not in self._homes:
            self._homes[in_memory] = OwnedDirectory(self._query, SHARED_MEMORY if in_memory else self.base)
        return self._homes[in_memory].path

    def _existing_homes(self) -> list[Path]:
        return [home.path for home in self._homes.values()]


def _free_memory() -> int:
    found = os.statvfs(SHARED_MEMORY)
    return found.f_bavail * found.f_frsize


def _name(key: TaskKey) -> str:
    return f"{key.stage}-{key.task}-{key.attempt}"


class BorrowedStore(FrameStore):
    """The store of a task that runs in another process than the owner of the directories, which makes and removes them.

    The budget is this task's share; without a directory in memory everything goes to disk.
    """

    def __init__(self, memory_home: str, disk_home: str, memory_budget: int) -> None:
        super().__init__(MemoryBudget(memory_budget if memory_home else 0), Path(disk_home))
        self._memory_home = Path(memory_home) if memory_home else None

    def _home(self, *, in_memory: bool) -> Path:
        return self._memory_home if in_memory and self._memory_home is not None else self.base

    def _existing_homes(self) -> list[Path]:
        return [self.base] if self._memory_home is None else [self._memory_home, self.base]
