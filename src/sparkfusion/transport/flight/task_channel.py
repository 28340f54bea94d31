"""A worker's end of a task channel: rows and questions go up, units come down, a caller that goes cancels the task."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyarrow import flight

from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.frames import compact, write_options
from sparkfusion.transport.base import TaskEnds, TaskOrder
from sparkfusion.transport.flight.protocol import frames_of
from sparkfusion.transport.message import ProtocolError, pack, unpack
from sparkfusion.worker.cancel import CancelToken

_TURN_SECONDS = 0.5


class TaskChannel:
    """One task's call. The task's thread sends; a thread of its own listens, because listening has no end."""

    def __init__(self, reader: Any, writer: Any, unit_bytes: int) -> None:
        self._reader = reader
        self._writer = writer
        self._unit_bytes = unit_bytes
        self._answers: queue.SimpleQueue[bytes | Exception | None] = queue.SimpleQueue()
        self._options = write_options("none")
        self._cancel = CancelToken()
        self._listener: threading.Thread | None = None

    def open(self, order: TaskOrder) -> tuple[TaskEnds, CancelToken]:
        """Begin to listen; gives the ends that the task gets."""
        self._options = write_options(order.compression)
        name = f"sparkfusion-{order.spec.key.query}-listen"
        self._listener = threading.Thread(target=self._listen, name=name, daemon=True)
        self._listener.start()
        fed = order.spec.feed is not None
        return TaskEnds(self._rows, self if fed else None, self._deliver if fed else None), self._cancel

    def close(self) -> None:
        """Wait until the caller has closed its side, which it does when it has its answer: the call must outlive the
        listener, or the listener would read from a call that is no more."""
        if self._listener is not None:
            self._listener.join()

    def send(self, message: bytes) -> None:
        try:
            self._writer.write_metadata(message)
        except (flight.FlightError, pa.ArrowException, OSError):
            raise ChannelClosedError from None

    # ---- units

    def take(self, offset: int) -> bytes | None:
        """Waits for the caller in turns: one that hangs says nothing, and the query may be let go meanwhile."""
        self.send(pack("take", {"offset": offset}))
        while not self._cancel.cancelled:
            with suppress(queue.Empty):
                answer = self._answers.get(timeout=_TURN_SECONDS)
                if isinstance(answer, Exception):
                    raise answer
                return answer
        raise ChannelClosedError

    def failed(self, offset: int) -> None:
        with suppress(ChannelClosedError):
            self.send(pack("failed", {"offset": offset}))

    def enough(self) -> None:
        with suppress(ChannelClosedError):
            self.send(pack("enough"))

    def _deliver(self, offset: int, frames: Iterator[pa.RecordBatch]) -> None:
        for frame in frames:
            self._rows(frame)
        self.send(pack("delivered", {"offset": offset}))

    def _rows(self, batch: pa.RecordBatch) -> None:
        for frame in frames_of(compact(batch), self._options):
            self.send(pack("rows", {}, memoryview(frame)))

    def _listen(self) -> None:
        try:
            while True:
                kind, _, blobs = unpack(memoryview(self._reader.read_chunk().app_metadata), self._unit_bytes)
                if kind not in ("units", "end"):
                    raise ProtocolError(f"a task cannot be told {kind!r}")
                self._answers.put(bytes(blobs[0]) if kind == "units" and blobs else None)
        except Exception:  # the caller has gone, or speaks nonsense
            self._answers.put(ChannelClosedError())
            self._cancel.cancel()
