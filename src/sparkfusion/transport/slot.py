"""A worker's slots: how much runs at once, whoever asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.feed.feed import UnitSource
from sparkfusion.worker.cancel import CancelToken

_TURN_SECONDS = 0.1


class Slot:
    """The slot of one task, given back while the task only waits for somebody else. Used by the task's thread."""

    def __init__(self, slots: threading.Semaphore, cancel: CancelToken) -> None:
        self._slots = slots
        self._cancel = cancel
        self._held = False

    def __enter__(self) -> Slot:
        self._acquire()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._release()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let others have the slot meanwhile."""
        self._release()
        try:
            yield
        finally:
            self._acquire()

    def _acquire(self) -> None:
        while not self._slots.acquire(timeout=_TURN_SECONDS):
            if self._cancel.cancelled:
                raise ChannelClosedError
        self._held = True

    def _release(self) -> None:
        if self._held:
            self._held = False
            self._slots.release()


class UnhurriedUnits:
    """Units of a task that lends its slot while it waits for them."""

    def __init__(self, units: UnitSource, slot: Slot) -> None:
        self._units = units
        self._slot = slot

    def take(self, offset: int) -> bytes | None:
        with self._slot.lent():
            return self._units.take(offset)

    def failed(self, offset: int) -> None:
        self._units.failed(offset)

    def enough(self) -> None:
        self._units.enough()
