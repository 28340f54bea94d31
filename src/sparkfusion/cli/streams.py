"""Standard streams as they are found: closed at the start, or left by their reader."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Let streams that a program was started without lead nowhere; the next file would get their place otherwise."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the first free place: this one
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")


def discard_output() -> None:
    """The reader of our output has closed the pipe: keep the interpreter from complaining when it flushes stdout."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # a stdout without a file descriptor has nothing to flush
        return
