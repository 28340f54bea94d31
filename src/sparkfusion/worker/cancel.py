"""Stopping a running task from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable


class CancelToken:
    """Set once, by any thread; whoever runs the task registers what to do then. Safe to set before or after."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._on_cancel: Callable[[], object] | None = None

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._on_cancel is not None:
                self._on_cancel()

    def watch(self, on_cancel: Callable[[], object] | None) -> None:
        """Call this on cancel, at once if that has happened already; None ends the watch."""
        with self._lock:
            self._on_cancel = on_cancel
            if self._cancelled and on_cancel is not None:
                on_cancel()
