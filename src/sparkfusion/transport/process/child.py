"""A child process of a worker: it runs one task after another, until the worker closes the pipe.

A child opens no network connection and makes no directory of its own. A native crash ends only this process.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import socket
import sys
import threading
import time

from sparkfusion.errors import QueryCancelledError, SparkfusionError, classify
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.transport.codec import child_order_of, pack_error, pack_report
from sparkfusion.transport.message import pack, unpack
from sparkfusion.transport.process.pipe import Pipe
from sparkfusion.transport.task_side import TaskSide
from sparkfusion.worker.carry_out import carry_out
from sparkfusion.worker.server.task_processes import ChildOrder

_LOOK_SECONDS = 0.02
_BUSY_SECONDS = 0.005


def main(descriptor: int) -> None:
    """Serve the worker at the other end of this socket."""
    faulthandler.enable()  # a native crash leaves the Python calls that led to it in the worker's log
    pipe = Pipe(socket.socket(fileno=descriptor))
    _Child(pipe).serve()


class _Child:
    """The main thread runs tasks, another one listens to the worker. When the worker is gone, the process ends."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._tasks: queue.SimpleQueue[tuple[ChildOrder, _PipeTaskSide]] = queue.SimpleQueue()

    def serve(self) -> None:
        threading.Thread(target=self._listen, name="sparkfusion-child-listen", daemon=True).start()
        self._pipe.send(pack("started"))
        while True:
            order, side = self._tasks.get()
            try:
                answer = _run(order, side)
            except SparkfusionError as error:
                self._pipe.send(pack_error(error))
                _wait_until_quiet()
                self._pipe.send(pack("ready"))
            else:
                self._pipe.send(answer)

    def _listen(self) -> None:
        side: _PipeTaskSide | None = None
        try:
            while True:
                data = self._pipe.receive()
                kind, fields, blobs = unpack(data, len(data))
                if kind == "task":
                    side = _PipeTaskSide(self._pipe)
                    self._tasks.put((child_order_of(fields, blobs), side))
                elif kind == "cancel" and side is not None:
                    side.close_answers()
                elif side is not None:
                    side.answer(kind, blobs)
        finally:  # the worker has closed the pipe, or has died; what runs here is of no more use to anybody
            os._exit(0)


class _PipeTaskSide(TaskSide):
    def __init__(self, pipe: Pipe) -> None:
        super().__init__()
        self._pipe = pipe

    def send(self, message: bytes) -> None:
        if self.cancel.cancelled:
            raise ChannelClosedError
        self._pipe.send(message)


def _run(child_order: ChildOrder, side: _PipeTaskSide) -> bytes:
    """The packed report of a task. Raises errors of ours only."""
    order = child_order.order
    key = order.key
    try:
        ends, stores = side.ends(order, "none"), child_order.directories.stores()
        return pack_report(carry_out(order, child_order.surroundings(), stores, ends, side.cancel))
    except ChannelClosedError:
        raise QueryCancelledError("the task was cancelled", where=key) from None
    except BaseException as error:
        found = classify(error, key)
        if found is error:
            raise
        raise found from error


def _wait_until_quiet() -> None:
    """Wait until the last task has really ended. DataFusion goes on for a while after a cancel or an error, and a
    function that it called may never return. The worker ends a child that takes too long."""
    while _is_busy():
        pass


def _is_busy() -> bool:
    before = time.process_time()
    time.sleep(_LOOK_SECONDS)
    known = {thread.ident for thread in threading.enumerate() if not isinstance(thread, threading._DummyThread)}
    return time.process_time() - before > _BUSY_SECONDS or bool(sys._current_frames().keys() - known)
