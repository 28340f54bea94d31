"""The task's side of a call: it sends rows and asks for work units; the caller's side answers."""

from __future__ import annotations

import queue
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa

from sparkfusion.errors import ProtocolError, SparkfusionError
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.frames import compact, frames_of, write_options
from sparkfusion.ids import FeedId, QueryId
from sparkfusion.transport.message import pack
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.task import TaskOrder

_TURN_SECONDS = 0.5


def begin_message(query: QueryId, feed: FeedId, task: int) -> bytes:
    """What a task says first when it calls the coordinator. `runner/spark/feed_service.py` reads it."""
    return pack("begin", {"query": query, "feed": feed, "task": task, "host": socket.gethostname()})


class TaskSide(ABC):
    """The task's thread sends and asks. The thread that listens passes the answers in with `answer`, and calls
    `close_answers` when no more will come."""

    def __init__(self) -> None:
        self.cancel = CancelToken()
        self._answers: queue.SimpleQueue[bytes | Exception | None] = queue.SimpleQueue()
        self._options = write_options("none")

    @abstractmethod
    def send(self, message: bytes) -> None:
        """Send a message to the caller. Raises `ChannelClosedError` if the caller is gone."""

    def ends(self, order: TaskOrder, compression: str) -> TaskEnds:
        """The functions that the task calls for rows and units."""
        self._options = write_options(compression)
        fed = order.feed is not None
        return TaskEnds(self._rows, self if fed else None, self._deliver if fed else None)

    # ---- the listener's side

    def answer(self, kind: str, blobs: list[memoryview]) -> None:
        if kind not in ("units", "end"):
            raise ProtocolError(f"unexpected message {kind!r} for a task")
        self._answers.put(bytes(blobs[0]) if kind == "units" and blobs else None)

    def close_answers(self, error: Exception | None = None) -> None:
        """No more answers come: the task is cancelled, or fails with that error."""
        self._answers.put(error or ChannelClosedError())
        if error is None:
            self.cancel.cancel()

    # ---- units

    def take(self, offset: int) -> bytes | None:
        """The units at that offset. A caller that hangs never answers, so this looks again and again whether the task
        was cancelled meanwhile."""
        return self._ask(pack("take", {"offset": offset}))

    def _ask(self, message: bytes) -> bytes | None:
        self.send(message)
        return self._next_answer()

    def _next_answer(self) -> bytes | None:
        while not self.cancel.cancelled:
            with suppress(queue.Empty):
                answer = self._answers.get(timeout=_TURN_SECONDS)
                if isinstance(answer, Exception):
                    raise answer
                return answer
        raise ChannelClosedError

    def report_failure(self, offset: int) -> None:
        with suppress(ChannelClosedError, SparkfusionError):  # only a count
            self.send(pack("failed", {"offset": offset}))

    def enough(self) -> None:
        with suppress(ChannelClosedError, SparkfusionError):  # others read more than they need
            self.send(pack("enough"))

    def _deliver(self, offset: int, frames: Iterator[pa.RecordBatch]) -> None:
        for frame in frames:
            self._rows(frame)
        self.send(pack("delivered", {"offset": offset}))

    def _rows(self, batch: pa.RecordBatch) -> None:
        for frame in frames_of(compact(batch), self._options):
            self.send(pack("rows", {}, memoryview(frame)))
