"""Cancel a running task from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable


class CancelToken:
    """Cancelled once, by any thread. The thread that runs the task registers, at any time, what to call then."""

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
        """Call this function on cancel, or at once if the token is cancelled already. None ends the watch."""
        with self._lock:
            self._on_cancel = on_cancel
            if self._cancelled and on_cancel is not None:
                on_cancel()
