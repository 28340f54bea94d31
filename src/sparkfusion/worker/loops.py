"""Event loops that are used again. A loop is never closed while native work may still call back into it."""

from __future__ import annotations

import asyncio
import atexit
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_free: list[asyncio.AbstractEventLoop] = []
_SETTLE_SECONDS = 0.2


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on this thread.

    Unlike `asyncio.run` it keeps the loop for the next call: a cancelled frame of DataFusion may be answered after the
    work has ended, and would print an error if its loop were closed.
    """
    with _lock:
        loop = _free.pop() if _free else asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        _cancel_rest(loop)
        with _lock:
            _free.append(loop)


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))


@atexit.register
def _settle() -> None:
    """Let native threads leave Python before the interpreter goes.

    DataFusion answers a frame from a thread of its own, which still holds the interpreter for a moment after the
    answer is here. If the process ends in that moment it crashes: 1 in 5 short programs that use DataFusion's
    asynchronous streams did, none of 40 that waited a tenth of a second, one of some hundred of those on a busy
    machine. There is nothing to wait on.
    """
    if _free:
        time.sleep(_SETTLE_SECONDS)
    for loop in _free:
        loop.close()
