"""A collection of objects that does not keep them alive, such as the running queries of a session."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class LiveObjects(Generic[T]):
    """Refers to objects without keeping them alive. Any thread may call any method.

    A `WeakSet` alone is not enough: iterating over it fails if another thread adds an object meanwhile.
    """

    def __init__(self) -> None:
        self.clear()

    def add(self, one: T) -> None:
        with self._lock:
            self._objects.add(one)

    def __iter__(self) -> Iterator[T]:
        """The objects that are alive now."""
        with self._lock:
            return iter(list(self._objects))

    def clear(self) -> None:
        """Forget all objects. It is safe in a forked child, where another thread may have held the lock."""
        self._lock = threading.Lock()
        self._objects: weakref.WeakSet[T] = weakref.WeakSet()
