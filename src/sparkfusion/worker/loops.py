"""Event loops that are used again. A loop is never closed while native work may still call back into it."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import os
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
        self._busy: set[asyncio.AbstractEventLoop] = set()
        self._left_work = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            loop = self._free.pop() if self._free else asyncio.new_event_loop()
            self._busy.add(loop)
        try:
            return loop.run_until_complete(work)
        except BaseException:
            self._left_work = True
            raise
        finally:
            _cancel_rest(loop)
            with self._lock:
                if loop in self._busy:  # else it was inherited by a fork since
                    self._busy.remove(loop)
                    self._free.append(loop)

    def close(self) -> None:
        """At the end of the process."""
        if self._left_work or self._busy:
            stop_functions()
        if self._free:
            settle()
        for loop in self._free:
            loop.close()

    def leave_to_parent(self) -> None:
        """In a forked child: begin anew, and never close what was inherited.

        The child's loops wait on the same kernel object as the parent's. Closing one, which its collection does too,
        takes the parent's wake-up away, and the parent's next query would wait for ever.
        """
        for loop in [*self._free, *self._busy]:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(loop))
        self._lock = threading.Lock()
        self._free = []
        self._busy = set()
        self._left_work = False


_loops = _Loops()
atexit.register(_loops.close)
os.register_at_fork(after_in_child=_loops.leave_to_parent)


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
