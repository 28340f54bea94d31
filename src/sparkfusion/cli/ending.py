"""How the command ends: with its own status, whatever goes on in threads."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import FrameType

CANCELLED = 130
_AGAIN_SECONDS = 0.02


class Ending:
    """Ends the process with its status, after everything else that happens at exit. Make it before anything is loaded.

    The interpreter is not taken down, so native threads cannot get in its way. While the command is being loaded,
    Ctrl-C ends the process at once: an exception in the middle of an import may come out as any other. Later the first
    Ctrl-C cancels the command and the second one ends the process at once; files that it leaves are removed by the next
    one. In the shell, Ctrl-C cancels a statement, and the third one while it is being cancelled ends the process.
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
        """Everything is loaded and the command starts: from now on Ctrl-C is a KeyboardInterrupt."""
        self._is_loaded = True
        if signal.getsignal(signal.SIGINT) == self._interrupt:
            signal.signal(signal.SIGALRM, self._interrupt_again)
            sys.unraisablehook = self._regain

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed, in the shell since its last statement."""
        return self._interrupts > 0

    def next_statement(self) -> None:
        """This is a shell, and its last statement has ended: forget what was pressed."""
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
        """DataFusion asks our catalog for tables. It drops a Ctrl-C that arrives in the middle of that: try again."""
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
