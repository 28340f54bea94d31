"""Queries under way. They are stopped when the process ends, so that none of their threads is in native code then."""

from __future__ import annotations

import os
from typing import Protocol

from sparkfusion.live_objects import LiveObjects


class Work(Protocol):
    """A running query."""

    def stop(self) -> None:
        """Ask the query to end soon, without waiting. Any thread may call this, also after its end."""

    def is_running(self) -> bool:
        """Whether threads of the query still run."""


_open: LiveObjects[Work] = LiveObjects()
os.register_at_fork(after_in_child=_open.clear)


def add(work: Work) -> None:
    """Remember a query that starts. It is forgotten when no other object refers to it."""
    _open.add(work)


def stop() -> None:
    for work in _open:
        work.stop()


def is_running() -> bool:
    return any(work.is_running() for work in _open)
