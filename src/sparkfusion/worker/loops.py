"""Event loops that are used again. A loop is never closed while native work may still call back into it."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from sparkfusion.worker.leaving import settle, stop_functions

T = TypeVar("T")


class _Loops:
    """The loops of this process. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: list[asyncio.AbstractEventLoop] = []
        self._busy = 0
        self._left_work = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            loop = self._free.pop() if self._free else asyncio.new_event_loop()
            self._busy += 1
        try:
            return loop.run_until_complete(work)
        except BaseException:
            self._left_work = True
            raise
        finally:
            _cancel_rest(loop)
            with self._lock:
                self._free.append(loop)
                self._busy -= 1

    def close(self) -> None:
        """At the end of the process."""
        if self._left_work or self._busy:
            stop_functions()
        if self._free:
            settle()
        for loop in self._free:
            loop.close()


_loops = _Loops()
atexit.register(_loops.close)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on this thread.

    Unlike `asyncio.run` it keeps the loop for the next call: a cancelled frame of DataFusion may be answered after the
    work has ended, and would print an error if its loop were closed.
    """
    return _loops.run(work)


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
