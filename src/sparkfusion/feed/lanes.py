"""Lanes: units that were found and not yet given out. A shared feed has one, a partitioned one for each partition."""

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

Offer = Callable[[WorkUnit], bool]
"""Takes a unit, waiting while there is no room; False if no more are wanted."""


@dataclass(frozen=True)
class Found:
    """A unit that waits to be given out."""

    encoded: str
    weight: float
    hosts: tuple[str, ...]


@dataclass
class Lane:
    """What one call of `feed` has found. Guarded by its dispatcher's lock."""

    partition: int | None
    waiting: deque[Found] = field(default_factory=deque)
    started: bool = False
    ended: bool = False

    @property
    def exhausted(self) -> bool:
        return self.ended and not self.waiting

    @property
    def weight(self) -> float:
        return sum(found.weight for found in self.waiting)

    def cut(self, share: float, most: int, host: str) -> list[Found]:
        """Take units for one task off the lane: at least one, about `share` of weight, at most `most`.

        Units that wish for this host go first, then those that wish for none; a wish never keeps a unit waiting.
        """
        if not self.waiting:
            return []
        if any(found.hosts for found in self.waiting):
            ranked = sorted(self.waiting, key=lambda found: 0 if host in found.hosts else 2 if found.hosts else 1)
        else:
            ranked = list(self.waiting) if len(self.waiting) <= most else [self.waiting[i] for i in range(most)]
        taken = [ranked[0]]
        total = ranked[0].weight
        for found in ranked[1:most]:
            if total + found.weight > share:
                break
            taken.append(found)
            total += found.weight
        if taken == [self.waiting[i] for i in range(len(taken))]:
            for _ in taken:
                self.waiting.popleft()
        else:
            chosen = {id(found) for found in taken}
            self.waiting = deque(found for found in self.waiting if id(found) not in chosen)
        return taken


def pull(units: Any, offer: Offer, on_stop: Callable[[Callable[[], object]], None]) -> None:
    """Pass a provider's units on until they end or no more are wanted; its generator is closed in every case.

    An asynchronous one is also interrupted while it waits; a synchronous one has to look at its context.
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
    """A thread that cannot keep the process alive: a provider may block for ever."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
