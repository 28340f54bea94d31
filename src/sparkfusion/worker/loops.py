"""Event loops that are used again. A loop is never closed while native code may still call back into it."""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from sparkfusion.worker import open_work
from sparkfusion.worker.leaving import native_threads, wait_for_native_threads

T = TypeVar("T")
_QUERY_SECONDS = 10.0
_FRAME_SECONDS = 1.0


class _Frame(asyncio.Future[Any]):
    """A frame that DataFusion still has to deliver. First its thread asks whether the frame is still wanted."""

    def __init__(self, loop: _Loop) -> None:
        super().__init__(loop=loop)
        self._waiter = threading.get_ident()
        self._owed = loop.owed
        self._owed.add(self)

    def cancelled(self) -> bool:
        if threading.get_ident() != self._waiter:
            self._owed.discard(self)
        return super().cancelled()


class _Loop(asyncio.SelectorEventLoop):
    """A loop that knows which frames DataFusion still has to deliver, cancelled ones included."""

    def __init__(self, owed: set[asyncio.Future[Any]]) -> None:
        super().__init__()
        self.owed = owed

    def create_future(self) -> asyncio.Future[Any]:
        return _Frame(self)


class _Loops:
    """The loops of this process. Any thread."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._free: list[_Loop] = []
        self._busy: set[_Loop] = set()
        self._owed: set[asyncio.Future[Any]] = set()
        self._strangers: frozenset[int] | None = None
        self._leaving = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._leaving:
                work.close()
                raise asyncio.CancelledError
            if self._strangers is None:
                self._strangers = native_threads()
            loop = self._free.pop() if self._free else _Loop(self._owed)
            self._busy.add(loop)
        try:
            return loop.run_until_complete(work)
        finally:
            _cancel_rest(loop)
            with self._lock:
                if loop in self._busy:  # else it was inherited by a fork since
                    self._busy.remove(loop)
                    self._free.append(loop)

    def close(self) -> None:
        """Called at the end of the process: stop what runs, and wait until DataFusion no longer calls us."""
        if self._strangers is None and not open_work.is_running():
            return  # nothing was ever run
        with self._lock:
            self._leaving = True
            strangers = native_threads() if self._strangers is None else self._strangers
            for loop in self._busy:
                loop.call_soon_threadsafe(_cancel_tasks, loop)
        open_work.stop()
        if not wait_for_native_threads(self._patience, strangers):
            self._keep_open()
            return
        for loop in self._free:
            loop.close()
        wait_for_native_threads(self._patience, strangers)  # closing lets others in

    def _patience(self) -> float:
        """How long to wait for queries, which end soon unless a function of the user blocks, and for frames that
        DataFusion still has to deliver.

        A join may compute for long before it notices that it was cancelled. Its frame comes only then.
        """
        if self._busy or open_work.is_running():
            return _QUERY_SECONDS
        return _FRAME_SECONDS if self._owed else 0.0

    def leave_to_parent(self) -> None:
        """In a forked child: start with new loops, and never close the inherited ones.

        The child's loops wait on the same kernel object as the parent's. Closing one (which garbage collection does
        too) would remove the parent's wake-up, and the parent's next query would wait for ever.
        """
        self._keep_open()
        self._begin()

    def _keep_open(self) -> None:
        """Keep the loops from being garbage collected, which would close them."""
        for loop in [*self._free, *self._busy]:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(loop))


_loops = _Loops()
atexit.register(_loops.close)
os.register_at_fork(after_in_child=_loops.leave_to_parent)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on this thread. Once the process is ending, the coroutine is cancelled instead.

    Unlike `asyncio.run` this keeps the loop for the next call. DataFusion may deliver a cancelled frame after the work
    has ended, and would print an error if the loop were closed by then.
    """
    return _loops.run(work)


def _cancel_tasks(loop: asyncio.AbstractEventLoop) -> set[asyncio.Task[Any]]:
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    return rest


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    if rest := _cancel_tasks(loop):
        loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
