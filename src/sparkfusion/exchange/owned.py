"""Directories that belong to a process and are removed with it, however it ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
import weakref
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from sparkfusion.errors import StoreFullError
from sparkfusion.ids import QueryId

DIRECTORY_PREFIX = "sparkfusion-"
LOCK = ".lock"
_ABANDONED_SECONDS = 3600.0  # a directory that has no lock after this time is abandoned


class OwnedDirectory:
    """A new directory below `base`, removed by `close`, at garbage collection, or when the interpreter exits.

    The owner holds a lock on a file inside. If the owner is killed, the lock is free, and the next process that makes a
    directory below the same base removes the old one. This is safe between processes and containers that share the
    base.
    """

    def __init__(self, purpose: str, base: Path) -> None:
        _remove_orphans_once(base)
        self.path = Path(tempfile.mkdtemp(prefix=f"{DIRECTORY_PREFIX}{os.getpid()}-{purpose}-", dir=base))
        lock = os.open(self.path / ".new-lock", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        (self.path / ".new-lock").rename(self.path / LOCK)  # so that no process sees it unlocked
        self._end = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Remove the directory and everything in it. Idempotent."""
        self._end()


def check_store(base: Path, what: str = "intermediate data") -> None:
    """Raise an error unless directories can be made below `base`."""
    if not (base.is_dir() and os.access(base, os.W_OK)):
        raise StoreFullError(
            unwritable(base, what),
            hint="set sparkfusion.store_dir (a worker's --store-dir) to a directory that exists and may be written",
        )


def unwritable(base: Path | str, what: str = "intermediate data") -> str:
    return f"{what} cannot be written to {str(base)!r}: no such directory, or no permission"


class SharedHome:
    """One directory below `base`, made now. `close` removes it, even while a cancelled task still writes.

    Spark kills the Python worker of a cancelled task only after two seconds. So the directory is renamed before it is
    removed: a task that still has the old name can create nothing under it.
    """

    def __init__(self, query: QueryId, base: Path) -> None:
        base = base.absolute()
        check_store(base)
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


def remove_remains(path: Path) -> bool:
    """Remove a directory that a late task made again after its owner had removed it. Returns whether it did. A
    directory that is not ours, or that has an owner, stays."""
    if not path.name.startswith(DIRECTORY_PREFIX) or (path / LOCK).exists():
        return False
    shutil.rmtree(path, ignore_errors=True)
    return True


def remove_orphans(base: Path) -> None:
    """Remove directories below `base` whose owner has ended, and directories that another process began to remove."""
    long_ago = time.time() - _ABANDONED_SECONDS
    for path in base.glob(f"{DIRECTORY_PREFIX}[0-9]*-*"):
        with suppress(OSError):
            if path.stat().st_mtime < long_ago and path.is_dir():
                remove_remains(path)
    for path in base.glob(f"{DIRECTORY_PREFIX}*/{LOCK}"):
        try:
            lock = os.open(path, os.O_RDWR)
        except OSError:  # removed meanwhile, or another user's
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
        else:
            _remove(path.parent, lock, os.getpid())


_remove_orphans_once = lru_cache(maxsize=16)(remove_orphans)  # a session may write to many directories


def _remove(path: Path, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # a forked child must not remove its parent's files
        shutil.rmtree(path, ignore_errors=True)
    os.close(lock)
