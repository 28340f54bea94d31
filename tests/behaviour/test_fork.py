"""A process that has run queries may fork; its child ends as it likes."""

from __future__ import annotations

import subprocess
import sys

FORKS = """
import os, sys
import sparkfusion
session = sparkfusion.connect()
ask = lambda: session.sql("select 1 as one").to_pylist()
ask()
child = os.fork()
if child == 0:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), ask())
"""


def test_a_forked_child_that_ends_does_not_hold_up_its_parent() -> None:
    """The child shares what the parent's event loops wait on: it must not close them, at exit or when collected."""
    ended = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (0, "7 [{'one': 1}]\n"), ended.stderr
