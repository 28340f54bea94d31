"""The end of the process: native threads have to leave Python before the interpreter goes, or it crashes."""

from __future__ import annotations

import ctypes
import sys
import threading
import time

_SETTLE_SECONDS = 0.2
_TURN_SECONDS = 0.05
_PATIENCE_SECONDS = 5.0


def settle() -> None:
    """Wait a moment, when nothing of ours runs.

    DataFusion answers a frame from a thread of its own, which still holds the interpreter for a moment after the
    answer is here. If the process ends in that moment it crashes: 1 in 5 short programs that use DataFusion's
    asynchronous streams did, none of 40 that waited a tenth of a second, one of some hundred of those on a busy
    machine. There is nothing to wait on.
    """
    time.sleep(_SETTLE_SECONDS)


def stop_functions() -> None:
    """End functions of the user's that DataFusion calls from its threads, for queries that nobody waits for.

    DataFusion notices a cancel between some hundred batches only, and calls a function for each of them. Here the
    function is made to raise `SystemExit`, which ends the query, until a while passes without a call.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    quiet_since = time.monotonic()
    while time.monotonic() < deadline and time.monotonic() - quiet_since < _SETTLE_SECONDS:
        for thread in _native_threads_in_python():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(SystemExit))
            quiet_since = time.monotonic()
        time.sleep(_TURN_SECONDS)


def _native_threads_in_python() -> set[int]:
    """Threads that Python did not start, and that run a function of Python's at this moment.

    At the end of the process the main thread, which is asking, is not among those that Python knows.
    """
    ours = {thread.ident for thread in threading.enumerate()} | {threading.get_ident(), threading.main_thread().ident}
    return {thread for thread in sys._current_frames() if thread not in ours}
