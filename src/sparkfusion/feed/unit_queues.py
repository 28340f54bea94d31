"""Queues of units that were found and not yet given to tasks. A shared feed has one, a partitioned feed several."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections import deque
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from sparkfusion.feed.units import WorkUnit

_MOST_BYTES_AT_ONCE = 16 * 1024 * 1024

Offer = Callable[[WorkUnit], bool]
"""Accepts a unit, and waits while there is no room; False if no more are needed."""


@dataclass(frozen=True)
class Found:
    """A unit that waits to be given to a task."""

    encoded: str
    weight: float
    hosts: tuple[str, ...]


@dataclass
class UnitQueue:
    """The units that one call of `feed` has found; `weight` and `bytes` are sums over those that wait. Guarded by its
    dispatcher's lock."""

    partition: int | None
    waiting: deque[Found] = field(default_factory=deque)
    weight: float = 0.0
    bytes: int = 0
    started: bool = False
    ended: bool = False

    @property
    def exhausted(self) -> bool:
        return self.ended and not self.waiting

    def add(self, found: Found) -> None:
        self.waiting.append(found)
        self.weight += found.weight
        self.bytes += len(found.encoded)

    def take(self, share: float, most: int, host: str) -> list[Found]:
        """Take units for one task from the queue: at least one, about `share` of weight, at most `most`.

        Units that prefer this host go first, then those without a preference. A preference never keeps a unit waiting.
        """
        if any(found.hosts for found in self.waiting):
            rank = {id(f): 0 if host in f.hosts else 2 if f.hosts else 1 for f in self.waiting}
            self.waiting = deque(sorted(self.waiting, key=lambda found: rank[id(found)]))
        taken: list[Found] = []
        total, size = 0.0, 0
        while self.waiting and len(taken) < most:
            found = self.waiting[0]
            total, size = total + found.weight, size + len(found.encoded)
            if taken and (total > share or size > _MOST_BYTES_AT_ONCE):
                break
            taken.append(self.waiting.popleft())
            self.weight -= found.weight
            self.bytes -= len(found.encoded)
        return taken


def pull(units: Any, offer: Offer, on_stop: Callable[[Callable[[], object]], None]) -> None:
    """Pass a provider's units on until they end or no more are needed. Its generator is always closed.

    An asynchronous generator is also interrupted while it waits; a synchronous one has to check its context.
    """
    if isinstance(units, AsyncIterable) or inspect.isawaitable(units):
        asyncio.run(_pull_until_stopped(units, offer, on_stop))
    else:
        _pull_sync(units, offer)


def _pull_sync(units: Iterable[WorkUnit], offer: Offer) -> None:
    iterator = iter(units)
    try:
        for unit in iterator:
            if not offer(unit):
                break
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()


async def _pull_until_stopped(units: Any, offer: Offer, on_stop: Callable[[Callable[[], object]], None]) -> None:
    loop, work = asyncio.get_running_loop(), asyncio.current_task()
    assert work is not None

    def interrupt() -> None:
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(work.cancel)

    on_stop(interrupt)
    await _pull_async(units, offer)


async def _pull_async(units: Any, offer: Offer) -> None:
    if inspect.isawaitable(units):
        units = await units
    if not isinstance(units, AsyncIterable):
        _pull_sync(units, offer)
        return
    iterator = aiter(units)
    try:
        async for unit in iterator:
            if not offer(unit):
                break
    finally:
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()


def start_thread(work: Callable[[], None], name: str) -> threading.Thread:
    """Start a daemon thread, which cannot keep the process alive: a provider may block for ever."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
