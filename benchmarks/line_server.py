"""A process that answers requests, a line each, for the process that started it. For benchmarks and for tests."""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import TextIO


def keep_stdout() -> TextIO:
    """Where answers go. Whatever else is written, here or by a JVM, goes to the log."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def read_requests(grace: float, end: Callable[[], None]) -> queue.SimpleQueue[str | None]:
    """The lines of the input as they come, and None when it ends.

    `end` is called so many seconds later, for a process that is still in the middle of something then.
    """
    requests: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            requests.put(line)
        requests.put(None)
        time.sleep(grace)
        end()

    threading.Thread(target=read, daemon=True).start()
    return requests
