"""The caller's side of a task's call: it takes the task's rows and gives it work units, until the task has ended."""

from __future__ import annotations

from collections.abc import Callable

from sparkfusion.errors import ProtocolError
from sparkfusion.exchange.delivery import FrameBuffer
from sparkfusion.exchange.frames import batch_of
from sparkfusion.feed.feed import UnitSource
from sparkfusion.transport.codec import error_of, report_of
from sparkfusion.transport.message import Fields, pack, unpack
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.task import TaskReport


class CallerSide:
    """Used by the thread that started the task. Rows of a feed wait here until the rows of one offset are complete.

    Args:
        who: who runs the task, for error messages.
        receive: waits for the task's next message. `send` answers it.
        directory: for rows that wait; empty for the system's temporary one.
    """

    def __init__(
        self,
        who: str,
        receive: Callable[[], memoryview],
        send: Callable[[bytes], object],
        ends: TaskEnds,
        limit: int,
        directory: str = "",
    ) -> None:
        self._who = who
        self._receive = receive
        self._send = send
        self._ends = ends
        self._limit = limit
        self._undelivered = FrameBuffer(directory)

    def serve(self) -> TaskReport:
        """Serve the task until it has ended, and return its report. Raises the task's error."""
        kind, fields = self._serve_until("report", "error")
        if kind == "error":
            raise error_of(fields)
        return report_of(fields)

    def serve_feed(self) -> None:
        """Serve the task until it needs no more units; its report comes another way. After the last answer the task
        knows that all of its rows were delivered."""
        self._serve_until("finish")
        self._send(pack("end"))

    def _serve_until(self, *last: str) -> tuple[str, Fields]:
        try:
            while True:
                kind, fields, blobs = unpack(self._receive(), self._limit)
                if kind in last:
                    return kind, fields
                self._do(kind, fields, blobs)
        finally:
            self._undelivered.clear()

    def _do(self, kind: str, fields: Fields, blobs: list[memoryview]) -> None:
        ends = self._ends
        if kind == "rows" and blobs:
            self._take_rows(blobs[0])
        elif kind == "delivered" and ends.deliver is not None:
            ends.deliver(fields.integer("offset"), self._undelivered.frames())
        elif kind == "take":
            data = self._units().take(fields.integer("offset"))
            self._send(pack("end") if data is None else pack("units", {}, data))
        elif kind == "failed":
            self._units().report_failure(fields.integer("offset"))
        elif kind == "enough":
            self._units().enough()
        else:
            raise ProtocolError(f"{self._who} sent an unexpected {kind!r}")

    def _take_rows(self, data: memoryview) -> None:
        if self._ends.deliver is not None:
            self._undelivered.add(batch_of(data))
            return
        self._ends.read(data)
        self._ends.rows(batch_of(data))

    def _units(self) -> UnitSource:
        if self._ends.units is None:
            raise ProtocolError(f"{self._who} asks for units of a task that has none")
        return self._ends.units
