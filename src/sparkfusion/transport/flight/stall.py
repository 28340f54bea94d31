"""Notice that a worker no longer sends anything: Flight itself waits for ever."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable


class Stall:
    """Calls `give_up` once if `note_progress` or `rest` is not called for this many seconds while the `with` lasts."""

    def __init__(self, seconds: float, give_up: Callable[[], object]) -> None:
        self._seconds = seconds
        self._give_up = give_up
        self._moved = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sparkfusion-stall", daemon=True)

    def note_progress(self) -> None:
        self._moved = time.monotonic()

    def rest(self) -> None:
        """Expect nothing until `note_progress` is called."""
        self._moved = math.inf

    def __enter__(self) -> Stall:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while (left := self._moved + self._seconds - time.monotonic()) > 0:
            if self._over.wait(min(left, self._seconds)):
                return
        self._give_up()
