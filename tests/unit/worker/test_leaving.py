"""Native threads at the end of the process: who is inside of Python, and how they are kept out."""

from __future__ import annotations

import subprocess
import sys
import threading

import pyarrow as pa
from datafusion import SessionContext, udf

from sparkfusion.worker.leaving import native_threads


def test_native_threads_are_those_that_python_did_not_start() -> None:
    seen: list[tuple[int, frozenset[int]]] = []

    def look(values: pa.Array) -> pa.Array:
        threading.current_thread()  # has a dummy made, which stays
        seen.append((threading.get_ident(), native_threads()))
        return values

    context = SessionContext()
    context.register_udf(udf(look, [pa.int64()], pa.int64(), "volatile", "look"))
    before = native_threads()
    context.sql("select look(value) from range(3)").collect()
    assert [ident in inside for ident, inside in seen] == [True]
    assert threading.get_ident() not in seen[0][1]
    assert native_threads() <= before


ENDLESS = """
import sys, threading, time
import pyarrow as pa
import sparkfusion
import sparkfusion.worker.leaving as leaving
from datafusion import udf

leaving._PATIENCE_SECONDS = 0.3
called = threading.Event()

def endless(values, called=called):
    called.set()
    while True:
        time.sleep(0.01)

session = sparkfusion.connect()
session.register_udf(udf(endless, [pa.int64()], pa.int64(), "volatile", "endless"))
query = session.sql("select endless(value) from range(3)").stream()
called.wait()
sys.exit(3)
"""


def test_a_function_that_never_returns_does_not_hold_the_program() -> None:
    ended = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (3, "")


# The thread comes in after everything else was found to be done, as one does that hands over the last frame.
LATE = """
import threading
import pyarrow as pa
from datafusion import SessionContext, udf
from sparkfusion.worker.leaving import native_threads, wait_for_native_threads

inside, leave = threading.Event(), threading.Event()

def stay(values):
    inside.set()
    leave.wait()
    return values

context = SessionContext()
context.register_udf(udf(stay, [pa.int64()], pa.int64(), "volatile", "stay"))
query = context.sql("select stay(value) from range(3)")

def patience():
    if inside.is_set():
        leave.set()
    else:
        threading.Thread(target=query.collect, daemon=True).start()
        inside.wait()
    return 0.0

assert wait_for_native_threads(patience, frozenset())
print(len(native_threads()), "inside")
"""


def test_a_thread_that_comes_in_last_is_waited_for() -> None:
    ended = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr) == ("0 inside\n", "")
