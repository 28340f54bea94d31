"""Room for deep plans on DataFusion's own threads.

They have 2 MiB of stack each, which a chain of some 2,500 ANDs overflows. Rust reads RUST_MIN_STACK when it starts the
first thread, so the variable is there just while a session makes sure that DataFusion's threads run. Stack is address
space until it is used.
"""

from __future__ import annotations

import os
import threading
from functools import cache
from pathlib import Path

from datafusion import SessionContext

VARIABLE = "RUST_MIN_STACK"
ROOMY = 16 << 20
_THREADS = Path("/proc/self/task")
_TOKIO = "tokio-rt-worker"
_starting = threading.Lock()
_started = threading.Event()  # set if they were started here, with more stack


@cache
def has_roomy_stacks() -> bool:
    """Start DataFusion's threads with more stack. False if they run already, with less than that.

    Any thread may call it. While the first call lasts, `cache` lets others in: they wait, and get the same answer.
    """
    with _starting:
        chosen = os.environ.get(VARIABLE)
        if chosen is not None:  # the user's
            return chosen.isdigit() and int(chosen) >= ROOMY
        if _tokio_runs():
            return _started.is_set()
        os.environ[VARIABLE] = str(ROOMY)
        try:
            SessionContext().sql("select 1")
        finally:
            os.environ.pop(VARIABLE, None)
        _started.set()
        return True


def _tokio_runs() -> bool:
    """Whether there are threads of the runtime that DataFusion uses; seen on Linux only."""
    if not _THREADS.is_dir():
        return False
    return any(_name(thread) == _TOKIO for thread in _THREADS.iterdir())


def _name(thread: Path) -> str:
    try:
        return (thread / "comm").read_text().strip()
    except OSError:  # it has just ended
        return ""
