"""End the command with its own exit status, whatever its threads do."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import FrameType

CANCELLED = 130
WRONG = 1
"""The exit status of a command that found something wrong, such as a wrong answer."""
_AGAIN_SECONDS = 0.02


class Ending:
    """Ends the process with the exit status, after all other exit handlers. Construct it before any import that takes
    long.

    It skips the shutdown of the interpreter, which native threads could disturb. While the command is being imported,
    Ctrl-C ends the process at once: an exception in the middle of an import may be turned into any other. Later the
    first Ctrl-C cancels the command and the second one ends the process at once; files that it leaves are removed by
    the next one. In the shell, Ctrl-C cancels a statement, and the third one while it is being cancelled ends the
    process.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self._interrupts = 0
        self._is_shell = False
        self._is_loaded = False
        self._process = os.getpid()
        atexit.register(self._end)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)

    def start(self) -> None:
        """Called when all imports are done and the command starts. From now on Ctrl-C raises KeyboardInterrupt."""
        self._is_loaded = True
        if signal.getsignal(signal.SIGINT) == self._interrupt:
            signal.signal(signal.SIGALRM, self._interrupt_again)
            sys.unraisablehook = self._regain

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed, in the shell since its last statement."""
        return self._interrupts > 0

    def next_statement(self) -> None:
        """Called by the shell after each statement: forget earlier Ctrl-Cs."""
        self._is_shell, self._interrupts = True, 0

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._interrupts += 1
        if self._interrupts > (2 if self._is_shell else 1) or self.status is not None:
            os._exit(CANCELLED if self.status is None else self.status)
        if self._interrupts > 1:
            os.write(2, b"sparkfusion: cancelling; Ctrl-C again ends the shell\n")
            return
        if not self._is_loaded:
            os.write(2, b"sparkfusion: cancelled\n")
            os._exit(CANCELLED)
        raise KeyboardInterrupt

    def _regain(self, lost: sys.UnraisableHookArgs) -> None:
        """Repeat a Ctrl-C that was lost. DataFusion drops a KeyboardInterrupt that arrives while it asks our catalog
        for tables."""
        if issubclass(lost.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
        else:
            sys.__unraisablehook__(lost)

    def _interrupt_again(self, number: int, frame: FrameType | None) -> None:
        if self.status is None:
            raise KeyboardInterrupt

    def _end(self) -> None:
        if self.status is not None and os.getpid() == self._process:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.status)
