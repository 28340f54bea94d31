"""Wait for native code in a way that Ctrl-C interrupts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_TURN_SECONDS = 0.2


def interruptible(call: Callable[[], T]) -> T:
    """Run a call on a thread of its own and wait for it in short steps.

    Ctrl-C ends the wait at once. The call itself continues until it notices or the process ends: native code that never
    yields cannot be stopped, but the user does not have to wait for it.
    """
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(call())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="sparkfusion-interruptible", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_TURN_SECONDS)
    if failed:
        raise failed[0]
    return done[0]
