"""The end of the process: native threads are out of Python before the interpreter goes.

DataFusion's threads call Python, to hand over a frame and to run a function of the user's. If such a thread waits to
enter Python when the interpreter shuts down, it waits for ever, which is harmless. If it is inside Python, CPython 3.13
and earlier end it with `pthread_exit`, and Rust aborts the process (https://github.com/python/cpython/issues/87135).
Nothing here interrupts such a thread: we wait for it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_PATIENCE_SECONDS = 10.0
_TURN_SECONDS = 0.002
_HOLD_SECONDS = 20.0
_GATHER_SECONDS = 0.2


def wait_for_native_threads(patience: Callable[[], float], known: frozenset[int]) -> bool:
    """Wait until native threads are out of Python, and keep them out. On the main thread, when the process ends.

    A function of the user's that is being called ends that call; the next one fails, and with it the query. If it
    takes longer than ten seconds, or the user presses Ctrl-C, the answer is False and the process ends all the same.

    Args:
        patience: seconds that what we are waiting for besides is worth in all; 0 if there is nothing.
        known: native threads that have nothing to do with us.
    """

    def worth() -> float:
        besides = patience()  # asked first: what it no longer counts may have come in since, and is seen
        return besides if native_threads() <= known else _PATIENCE_SECONDS

    started = time.monotonic()
    _flush()
    with contextlib.suppress(KeyboardInterrupt):
        while not _hold_if(lambda: worth() == 0):
            _refuse_calls()
            if time.monotonic() - started > worth():
                break
            time.sleep(_TURN_SECONDS)
        else:
            return True
    _hold_all()
    return False


def _hold_if(is_quiet: Callable[[], bool]) -> bool:
    """Let no other thread in from now on, if it is quiet: one that wants in asks for it only after so many seconds.

    The order is what matters. A thread that began to wait before has the shorter time still, and is seen.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_HOLD_SECONDS)
    if is_quiet():
        return True
    sys.setswitchinterval(before)
    return False


def _hold_all() -> None:
    """Let threads that will not leave come to wait for the interpreter, and there they stay.

    Who waits already has the shorter time still and gets one turn. Then nobody does for as long as a function that
    wakes now and then is away; one that is away for longer will hardly come back in the moments that are left.
    """
    sys.setswitchinterval(_HOLD_SECONDS)
    time.sleep(_TURN_SECONDS)
    until = time.monotonic() + _GATHER_SECONDS
    while time.monotonic() < until:
        pass


def native_threads() -> frozenset[int]:
    """Threads that Python did not start, and that are inside of it or about to come in.

    `_current_exceptions` has every thread that the interpreter knows, also those that run no Python code at this
    moment. A native thread that asks for its `threading.current_thread()` gets a dummy, which stays after it has left.
    """
    return frozenset(sys._current_exceptions()) - _python_threads()


def _python_threads() -> set[int | None]:
    """Those that Python started, and the main one, which it does not count any more when the process ends."""
    started = {each.ident for each in threading.enumerate() if not isinstance(each, threading._DummyThread)}
    return started | {threading.main_thread().ident}


def _refuse_calls() -> None:
    """Let calls of Python functions fail that DataFusion has not begun yet.

    It notices a cancel once in some hundred batches, and would call the function for each. The arguments of a call are
    made by `pyarrow.array`, on DataFusion's own thread.
    """
    if isinstance(pa.array, _Refusal):
        return
    pa.array = _Refusal(pa.array)


@dataclass(frozen=True)
class _Refusal:
    array: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() not in _python_threads():
            raise RuntimeError("the program is ending")
        return self.array(*args, **kwargs)


def _flush() -> None:
    """Write what is to be written: the main thread lets others in when it writes."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
