"""Standard streams that were closed at the start, or whose reader has left."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Open the null device for standard streams that were closed at the start. Otherwise the next file that is opened
    would get their descriptor."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor, which is this one
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")


def discard_output() -> None:
    """Called when the reader of our output has closed the pipe. Keeps the interpreter from an error when it flushes
    stdout."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # a stdout without a file descriptor has nothing to flush
        return
