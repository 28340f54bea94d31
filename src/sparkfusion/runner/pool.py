"""A bounded pool of threads for one query's tasks."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable


class TaskPool:
    """Runs submitted calls on at most `slots` threads, started as they are needed.

    Each query has a pool of its own: a consumer that stops reading holds only its own query's slots. The threads are
    daemons, so an abandoned query cannot keep the interpreter from exiting.
    """

    def __init__(self, slots: int, name: str) -> None:
        self._slots = slots
        self._name = name
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._threads: list[threading.Thread] = []

    def submit(self, call: Callable[[], None]) -> None:
        """Queue a call, which must not raise. Any thread may call this; after `close` nothing happens."""
        with self._lock:
            if self._closed:
                return
            self._work.put(call)
            if len(self._threads) < self._slots:
                thread = threading.Thread(target=self._serve, name=f"{self._name}-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def is_on_its_own_thread(self) -> bool:
        """Whether the caller runs on a thread of the pool."""
        return threading.current_thread() in self._threads

    def close(self, timeout: float) -> bool:
        """Run the queued calls, end the threads and wait for them. False if some are still busy after the timeout."""
        with self._lock:
            self._closed = True
        for _ in self._threads:
            self._work.put(None)
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _serve(self) -> None:
        while (call := self._work.get()) is not None:
            call()
