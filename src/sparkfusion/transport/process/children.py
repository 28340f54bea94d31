"""The child processes of a worker: started when a task needs one, kept warm between tasks."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

from sparkfusion.errors import ExternalError
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.transport.codec import pack_child_order
from sparkfusion.transport.process.supervised import SupervisedChild
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.server.task_processes import ChildOrder
from sparkfusion.worker.task import TaskReport


class Children:
    """The children of one worker. Any thread may call any method. There is one child for each running task, including
    tasks that lent their slot.

    Args:
        idle: how many idle children are kept.
    """

    def __init__(self, idle: int) -> None:
        self._most_idle = idle
        self._begin()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._idle: list[SupervisedChild] = []
        self._all: set[SupervisedChild] = set()
        self._closed = False
        self._starter = ThreadPoolExecutor(1, "sparkfusion-children")

    def warm(self) -> None:
        """Start the idle children in the background, so that the first tasks wait less."""
        for _ in range(self._most_idle):
            self._starter.submit(lambda: self._give_back(self._start()))

    def run(self, order: ChildOrder, ends: TaskEnds, cancel: CancelToken, limit: int) -> TaskReport:
        """Run a task in a child and wait for it here. Raises errors of ours, and errors that the ends raise."""
        child = self._acquire()
        try:
            child.wait_until_started(cancel)
            if cancel.cancelled:
                raise ChannelClosedError
            return child.run(order.order.key, pack_child_order(order), ends, cancel, limit)
        finally:
            self._give_back(child)

    def resident_bytes(self) -> int:
        """The memory that all children hold now."""
        with self._lock:
            children = list(self._all)
        return sum(child.resident_bytes for child in children)

    def close(self) -> None:
        """End every child. Idempotent."""
        if self._owner != os.getpid():  # a fork: they are the parent's
            return
        with self._lock:
            self._closed = True
            children, self._all, self._idle = list(self._all), set(), []
        for child in children:
            child.stop()
        self._starter.shutdown()

    def _acquire(self) -> SupervisedChild:
        if self._owner != os.getpid():
            self._begin()
        with self._lock:
            while self._idle:
                child = self._idle.pop()  # the one that ran last: its memory is warm
                if child.takes_tasks:
                    return child
                self._all.discard(child)
                child.stop()
        try:
            return self._starter.submit(self._start).result()
        except RuntimeError:
            raise ExternalError("the worker is closing") from None

    def _start(self) -> SupervisedChild:
        """Start a child on the starter's thread, which lives as long as the children do."""
        child = SupervisedChild()
        with self._lock:
            closed = self._closed
            self._all.add(child)
        if closed:
            child.stop()
        return child

    def _give_back(self, child: SupervisedChild) -> None:
        with self._lock:
            if child.alive and not self._closed and len(self._idle) < self._most_idle and not child.worn:
                self._idle.append(child)
                return
            self._all.discard(child)
        child.stop()
