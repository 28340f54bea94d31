"""Notice that a worker no longer sends anything: Flight itself waits for ever."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from sparkfusion.worker.awake_clock import AwakeClock

_TURNS = 8


class Stall:
    """Calls `give_up` once if `note_progress` or `rest` is not called for this many seconds while the `with` lasts."""

    def __init__(self, seconds: float, give_up: Callable[[], object]) -> None:
        self._seconds = seconds
        self._give_up = give_up
        self._interval = seconds / _TURNS
        self._clock = AwakeClock(self._interval)
        self._moved = self._clock.now
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sparkfusion-stall", daemon=True)

    def note_progress(self) -> None:
        self._moved = self._clock.now

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
        while not self._over.wait(self._interval):
            if self._clock.tick() - self._moved > self._seconds:
                self._give_up()
                return
