"""The shell on a pseudo-terminal, as a person uses it."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.test_main import SCRIPT

_CODES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>]|\][^\x07]*\x07)|\r")
_LONGEST_WAIT = 120
_ON_TERMINAL = "import os, sys; os.login_tty(int(sys.argv[1])); os.execv(sys.argv[2], sys.argv[2:])"
CTRL_C, CTRL_D, TAB, ENTER, UP = "\x03", "\x04", "\t", "\r", "\x1b[A"


class Terminal:
    """A process on a pseudo-terminal. `wait_for` reads on until a text appears that was not there before."""

    def __init__(self, *arguments: str, directory: Path) -> None:
        self._ours, theirs = os.openpty()
        environment = {
            **os.environ,
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "XDG_STATE_HOME": str(directory / "state"),
            "COLUMNS": "100",
            "LINES": "50",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ON_TERMINAL, str(theirs), *SCRIPT, *arguments],
            cwd=directory,
            env=environment,
            pass_fds=(theirs,),
        )
        os.close(theirs)
        self._shown = ""

    def type(self, *keys: str) -> None:
        os.write(self._ours, "".join(keys).encode())

    def wait_for(self, text: str) -> str:
        """What was shown up to the text."""
        end = time.monotonic() + _LONGEST_WAIT
        while text not in self._shown:
            left = end - time.monotonic()
            ready = select.select([self._ours], [], [], max(0.0, left))[0]
            assert ready, f"{text!r} did not appear, only {self._shown[-500:]!r}"
            self._shown += _CODES.sub("", os.read(self._ours, 65536).decode(errors="replace"))
        before, _, self._shown = self._shown.partition(text)
        return before + text

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(tmp_path: Path, items: str) -> Iterator[Terminal]:
    """The shell in a directory whose folder `items` is a table."""
    started = Terminal("-t", str(tmp_path), "--timing", directory=tmp_path)
    try:
        started.wait_for("sparkfusion>")
        yield started
    finally:
        started.close()


def test_lines_completion_history_and_the_end(terminal: Terminal, tmp_path: Path) -> None:
    terminal.type("select count(*) as counted", ENTER)
    terminal.wait_for("->")
    terminal.type("from ite", TAB)
    terminal.wait_for("ms")
    terminal.type(";", ENTER)
    terminal.wait_for("1000")
    terminal.wait_for("; 1 row; ")
    terminal.wait_for("sparkfusion>")
    terminal.type(UP, ENTER)
    terminal.wait_for("; 1 row; ")
    terminal.wait_for("sparkfusion>")
    terminal.type(CTRL_D)
    assert terminal.process.wait(_LONGEST_WAIT) == 0
    history = tmp_path / "state" / "sparkfusion" / "history"
    assert "+from items;" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("way", ["key", "signal"])
def test_ctrl_c_cancels_the_query_and_keeps_the_shell(terminal: Terminal, way: str) -> None:
    terminal.type("select sum(value) from generate_series(1, 1000000000000);", ENTER)
    terminal.wait_for(" s  single node")  # the progress line: it runs
    if way == "key":
        terminal.type(CTRL_C)
    else:
        terminal.process.send_signal(signal.SIGINT)
    terminal.wait_for("cancelled")
    terminal.wait_for("sparkfusion>")
    terminal.type("half a statement", CTRL_C)  # at the prompt, it drops what was typed
    terminal.wait_for("sparkfusion>")
    terminal.type("select 40 + 2 as answer;", ENTER)
    terminal.wait_for("42")
    terminal.wait_for("sparkfusion>")
    terminal.type(r"\q", ENTER)
    assert terminal.process.wait(_LONGEST_WAIT) == 0
