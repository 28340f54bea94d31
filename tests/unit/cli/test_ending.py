"""How the command ends when Ctrl-C comes at a bad moment: status 130, and one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

CANCELLED = (130, "sparkfusion: cancelled\n")
ENDLESS = "select sum(a.id * b.id + c.id * d.id) from items a, items b, items c, items d"

# Presses Ctrl-C when the named module is about to be loaded.
WHILE_LOADING = """
import os, signal, sys

module = sys.argv.pop(1)

class Press:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(Press)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Press)
from sparkfusion.cli import main
sys.exit(main())
"""

# Presses Ctrl-C when DataFusion registers a table in our catalog, or shows the name of the catalog's owner.
IN_A_CALL = """
import os, signal, sys
from sparkfusion.cli import ending, main

def press():
    if presses:
        os.kill(os.getpid(), presses.pop())

class Owner:
    def __repr__(self):
        press()
        return "nobody"

def prepare():
    from sparkfusion.session.session_schema import SessionSchema
    register = SessionSchema.register_table
    if name == "owner_name":
        SessionSchema.owner_name = Owner()
    else:
        SessionSchema.register_table = lambda *args: (press(), register(*args))[1]

presses, name = [signal.SIGINT], sys.argv.pop(1)
start = ending.Ending.start
ending.Ending.start = lambda self: (start(self), prepare())
sys.exit(main())
"""


def run(program: str, *arguments: str) -> tuple[int, str]:
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=100, check=False
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    "module",
    ["click", "pyarrow.lib", "datafusion._internal", "sparkfusion.session.session", "sparkfusion.cli.commands.worker"],
)
def test_ctrl_c_while_the_command_is_loaded(module: str) -> None:
    assert run(WHILE_LOADING, module, "sql", "-c", "select 1") == CANCELLED


def test_nothing_is_loaded_before_the_command_can_answer_ctrl_c() -> None:
    """What Python itself has to load for a script is not counted."""
    program = "import sys; before = {*sys.modules}; import sparkfusion.cli.ending; print(*{*sys.modules} - before)"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    ours = {each for each in shown.stdout.split() if each.startswith("sparkfusion")}
    assert ours == {"sparkfusion", "sparkfusion.cli", "sparkfusion.cli.ending", "sparkfusion.cli.streams"}
    assert not {"typing", "pyarrow", "datafusion", "click"} & set(shown.stdout.split())


@pytest.mark.parametrize(
    "method", ["register_table", "owner_name"], ids=["DataFusion makes another error of it", "DataFusion drops it"]
)
def test_ctrl_c_while_datafusion_asks_the_catalog(items: str, method: str) -> None:
    assert run(IN_A_CALL, method, "sql", "-c", ENDLESS, "-t", items) == CANCELLED
