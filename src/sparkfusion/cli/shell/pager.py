"""Show long output one screen at a time."""

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
    """Output for the terminal, held until its length is known."""

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
    """Run the pager. It handles Ctrl-C itself, and leaving it early is not an error."""
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, encoding="utf-8")
        try:
            pager.communicate(text)
        except BrokenPipeError:
            pager.wait()
    finally:
        signal.signal(signal.SIGINT, handler)
