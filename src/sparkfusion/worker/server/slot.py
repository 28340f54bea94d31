"""A worker's slots: how many tasks run at once, of all queries together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pyarrow as pa

from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.feed.feed import UnitSource
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds

_TURN_SECONDS = 0.1


class Slot:
    """The slot of one task. The task gives it back while it only waits. Used by the task's thread; `forfeit` by any
    thread. Without `slots` a slot is always free."""

    def __init__(self, slots: threading.Semaphore | None, cancel: CancelToken) -> None:
        self._slots = slots
        self._cancel = cancel
        self._lock = threading.Lock()
        self._held = False
        self._forfeited = False

    def __enter__(self) -> Slot:
        self._acquire()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._release()

    @contextmanager
    def lend(self) -> Iterator[None]:
        """Let other tasks have the slot while the `with` lasts."""
        self._release()
        try:
            yield
        finally:
            self._acquire()

    def forfeit(self) -> None:
        """Give the slot to other tasks for good: the task was cancelled and does not end."""
        with self._lock:
            self._forfeited = True
        self._release()

    def _acquire(self) -> None:
        while self._slots is not None and not self._slots.acquire(timeout=_TURN_SECONDS):
            if self._cancel.cancelled:
                raise ChannelClosedError
        with self._lock:
            self._held = True
            forfeited = self._forfeited
        if forfeited:
            self._release()
            raise ChannelClosedError

    def _release(self) -> None:
        with self._lock:
            held, self._held = self._held, False
        if held and self._slots is not None:
            self._slots.release()


def lend_while_waiting(ends: TaskEnds, slot: Slot) -> TaskEnds:
    """The same ends for a task that lends its slot while it waits for the consumer or for units."""
    rows, units, deliver = ends.rows, ends.units, ends.deliver

    def give_rows(batch: pa.RecordBatch) -> None:
        with slot.lend():
            rows(batch)

    def deliver_rows(offset: int, frames: Iterator[pa.RecordBatch]) -> None:
        assert deliver is not None
        with slot.lend():
            deliver(offset, frames)

    return TaskEnds(
        give_rows,
        LentUnits(units, slot.lend) if units is not None else None,
        deliver_rows if deliver is not None else None,
    )


class LentUnits:
    """Units of a task that lends its slot to other tasks while it waits for them."""

    def __init__(self, units: UnitSource, lend: Callable[[], AbstractContextManager[None]]) -> None:
        self._units = units
        self._lend = lend
        self.report_failure = units.report_failure
        self.enough = units.enough

    def take(self, offset: int) -> bytes | None:
        with self._lend():
            return self._units.take(offset)
