"""Short programs end as they should: native threads have left Python before the interpreter goes."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sparkfusion
session = sparkfusion.connect()
print(session.sql("select 1 as one").to_pylist())
"""
RUNS = 12


def test_short_programs_do_not_crash_at_exit() -> None:
    """Without the wait at exit, about one in five did, on a busy machine."""
    running = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(RUNS)
    ]
    ended = [(process.communicate(timeout=100), process.returncode) for process in running]
    assert [(out, code) for (out, _), code in ended] == [("[{'one': 1}]\n", 0)] * RUNS, [err for (_, err), _ in ended]
