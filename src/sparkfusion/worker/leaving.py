"""The end of the process: native threads must have left Python before the interpreter shuts down.

DataFusion's threads call Python, to pass on a frame and to run functions of the user. If such a thread waits to enter
Python when the interpreter shuts down, it waits for ever, which is harmless. If it is inside Python, CPython 3.13 and
earlier end it with `pthread_exit`, and Rust aborts the process (https://github.com/python/cpython/issues/87135).
So we wait for such a thread. One that does not leave is stopped where it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
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
_ENDS_THREADS = sys.version_info < (3, 14)
"""Whether this CPython ends threads that want to enter it when it shuts down. Later ones let them wait."""


def wait_for_native_threads(patience: Callable[[], float], known: frozenset[int]) -> bool:
    """Wait until native threads have left Python, and keep them out. Called on the main thread when the process ends.

    If a function of the user is running, that call ends; the next call fails, and the query with it. If it takes longer
    than ten seconds, or the user presses Ctrl-C, this returns False and the process ends all the same.

    Args:
        patience: seconds to wait in all for other work that is still under way; 0 if there is none.
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
    if _ENDS_THREADS:
        _stop(native_threads() - known)
    return False


def _hold_if(is_quiet: Callable[[], bool]) -> bool:
    """Keep other threads out of Python from now on, if none is inside: a thread that wants to enter then waits this
    many seconds before it asks.

    The order matters. A thread that began to wait before still has the shorter time, and is noticed.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_HOLD_SECONDS)
    if is_quiet():
        return True
    sys.setswitchinterval(before)
    return False


def _hold_all() -> None:
    """Let threads that do not leave wait for the interpreter, where they stay.

    A thread that waits already still has the shorter time, and gets one turn. After that no thread gets a turn. This
    covers functions that wake up now and then; a function that sleeps longer will hardly return in the moments that are
    left.
    """
    sys.setswitchinterval(_HOLD_SECONDS)
    time.sleep(_TURN_SECONDS)
    until = time.monotonic() + _GATHER_SECONDS
    while time.monotonic() < until:
        pass


def _stop(threads: frozenset[int]) -> None:
    """Stop native threads for good: each gets a signal whose handler, `pause` of the C library, waits for ever.

    CPython 3.12 and 3.13 let other threads run while they shut down, however long these are to wait. A thread that is
    stopped in the middle of native code may hold a lock, so this is for threads that we have waited for in vain.
    """
    number = getattr(signal, "SIGRTMAX", None)
    if number is None or not threads:
        return
    library = ctypes.CDLL(None)
    library.signal.argtypes, library.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    library.signal(number, ctypes.cast(library.pause, ctypes.c_void_p))
    for thread in threads:
        with contextlib.suppress(ProcessLookupError):
            signal.pthread_kill(thread, number)


def native_threads() -> frozenset[int]:
    """Threads that Python did not start, and that are inside Python or about to enter it.

    `_current_exceptions` lists every thread that the interpreter knows, also threads that run no Python code at this
    moment. A native thread that calls `threading.current_thread()` gets a dummy object, which stays after it has left.
    """
    return frozenset(sys._current_exceptions()) - _python_threads()


def _python_threads() -> set[int | None]:
    """The threads that Python started, and the main thread, which Python no longer counts when the process ends."""
    started = {each.ident for each in threading.enumerate() if not isinstance(each, threading._DummyThread)}
    return started | {threading.main_thread().ident}


def _refuse_calls() -> None:
    """Make calls of Python functions fail that DataFusion has not begun yet.

    DataFusion notices a cancel only once in some hundred batches, and would call the function for each of them. The
    arguments of a call are made by `pyarrow.array`, on DataFusion's own thread.
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
    """Write buffered output now: the main thread lets other threads run while it writes."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
