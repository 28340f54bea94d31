"""Native work that never yields must not keep the user from stopping."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sparkfusion.verify.interrupt import interruptible

ENDLESS = """
import os, signal, threading
from datafusion import SessionContext
from sparkfusion.verify.interrupt import interruptible

context = SessionContext()
context.from_pydict({"v": list(range(20_000))}, "t")
endless = context.sql("select sum(a.v * b.v % 7 + c.v) from t a, t b, t c")
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    interruptible(endless.to_arrow_table)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    os._exit(0)
"""


def test_ctrl_c_reaches_a_wait_for_native_work_that_never_yields() -> None:
    ended = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == "interrupted\n", ended.stderr


def test_results_and_errors_come_through() -> None:
    assert interruptible(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0)
