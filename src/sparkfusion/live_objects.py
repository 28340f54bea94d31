"""Objects that live as long as somebody uses them, such as the queries of a session that run."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class LiveObjects(Generic[T]):
    """Refers to objects without keeping them alive. Any thread may call any method.

    A `WeakSet` alone does not do: if one thread adds an object while another goes through them, that one fails.
    """

    def __init__(self) -> None:
        self.clear()

    def add(self, one: T) -> None:
        with self._lock:
            self._objects.add(one)

    def __iter__(self) -> Iterator[T]:
        """Those that live now."""
        with self._lock:
            return iter(list(self._objects))

    def clear(self) -> None:
        """Forget all of them; in a forked child too, where another thread may have held the lock."""
        self._lock = threading.Lock()
        self._objects: weakref.WeakSet[T] = weakref.WeakSet()
