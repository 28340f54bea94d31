"""Queries that have not ended. They are stopped when the process ends: none of their threads is in native code then."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Work(Protocol):
    """A query under way."""

    def stop(self) -> None:
        """Have it end soon, without waiting for that. From any thread, also when it has ended."""

    def is_running(self) -> bool:
        """Whether threads of its own still run."""


_open: weakref.WeakSet[Work] = weakref.WeakSet()
os.register_at_fork(after_in_child=_open.clear)


def add(work: Work) -> None:
    """Remember a query that starts. It is forgotten when nobody has it any more."""
    _open.add(work)


def stop() -> None:
    for work in list(_open):
        work.stop()


def is_running() -> bool:
    return any(work.is_running() for work in list(_open))
