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
    ended = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout) == (0, "7 [{'one': 1}]\n"), ended.stderr


CHILDREN_ASK = """
import os
import sparkfusion
session = sparkfusion.connect()
frame = session.sql("select 1 as one")
frame.collect()
asks = [frame.collect, lambda: session.sql("select 2"), lambda: session.from_pydict({"a": [1]}), sparkfusion.connect]
for ask in asks:
    child = os.fork()
    if child == 0:
        try:
            ask()
        except sparkfusion.UserError as error:
            os._exit(7 if "forked" in str(error) and "spawn" in str(error) else 8)
        os._exit(9)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), end=" ")
"""


def test_sessions_in_a_forked_child_are_refused() -> None:
    """They would hang: DataFusion's threads stay with the parent."""
    ended = subprocess.run(
        [sys.executable, "-c", CHILDREN_ASK], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "7 7 7 7 "), ended.stderr


def test_the_first_session_may_be_opened_after_a_fork() -> None:
    ask = "print(sparkfusion.connect().sql('select 1 as a').to_pylist())"
    program = f"import os, sparkfusion\nif os.fork() == 0: {ask}\nelse: os.wait()"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == "[{'a': 1}]\n", ended.stderr
