"""A lock for tests in which a second thread comes while a first one is in the middle of something."""

from __future__ import annotations

import threading


class WatchedLock:
    """Like `threading.Lock` in a `with`. `contended` is set when a thread has to wait for it."""

    def __init__(self) -> None:
        self.contended = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.contended.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
