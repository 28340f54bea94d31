"""A worker's end of a task's call. A caller that goes cancels the task."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
from pyarrow import flight

from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.transport.message import unpack
from sparkfusion.transport.task_channel import TaskChannel
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.task import TaskOrder


class CallChannel(TaskChannel):
    """One task's call. The task's thread sends; a thread of its own listens, because listening has no end."""

    def __init__(self, reader: Any, writer: Any, unit_bytes: int) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer
        self._unit_bytes = unit_bytes
        self._listener: threading.Thread | None = None

    def open(self, order: TaskOrder) -> tuple[TaskEnds, CancelToken]:
        """Begin to listen; gives the ends that the task gets."""
        name = f"sparkfusion-{order.key.query}-listen"
        self._listener = threading.Thread(target=self._listen, name=name, daemon=True)
        self._listener.start()
        return self.ends(order, order.compression), self.cancel

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

    def _listen(self) -> None:
        try:
            while True:
                kind, _, blobs = unpack(memoryview(self._reader.read_chunk().app_metadata), self._unit_bytes)
                self.answer(kind, blobs)
        except Exception:  # the caller has gone, or speaks nonsense
            self.close_answers()
