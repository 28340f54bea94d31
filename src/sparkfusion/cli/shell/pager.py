"""Long output, a screen at a time."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
import sys

_USUAL = "less -FRSX"


class Screen(io.StringIO):
    """Output for the terminal, held until it is known how long it is."""

    def isatty(self) -> bool:
        return True


def show(text: str, *, paging: bool) -> None:
    """Print the text, through a pager if it is longer than the terminal is high."""
    command = shlex.split(os.environ.get("PAGER", "") or _USUAL)
    height = shutil.get_terminal_size().lines
    if not paging or text.count("\n") < height or shutil.which(command[0]) is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    _run_pager(command, text)


def _run_pager(command: list[str], text: str) -> None:
    """Ctrl-C is for the pager; a pager that is left early is no error."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, encoding="utf-8")
        try:
            pager.communicate(text)
        except BrokenPipeError:
            pager.wait()
    finally:
        signal.signal(signal.SIGINT, handler)
