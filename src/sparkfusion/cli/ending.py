"""How the command ends: with its own status, whatever goes on in threads."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import FrameType

CANCELLED = 130


class Ending:
    """Ends the process with its status, after everything else that happens at exit.

    The interpreter is not taken down, so native threads cannot get in its way. The second Ctrl-C ends the process at
    once; files that it leaves are removed by the next one.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self._interrupted = False
        self._process = os.getpid()
        atexit.register(self._end)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self._interrupted or self.status is not None:
            os._exit(CANCELLED if self.status is None else self.status)
        self._interrupted = True
        raise KeyboardInterrupt

    def _end(self) -> None:
        if self.status is not None and os.getpid() == self._process:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.status)
