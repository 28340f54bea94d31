"""The end of a task channel that serves the task: it does what the task asks for, until the task has an answer."""

from __future__ import annotations

from collections.abc import Callable

from sparkfusion.exchange.delivery import FrameBuffer
from sparkfusion.exchange.frames import batch_of
from sparkfusion.feed.feed import UnitSource
from sparkfusion.transport.base import TaskEnds
from sparkfusion.transport.codec import error_of, report_of
from sparkfusion.transport.message import Fields, ProtocolError, pack, unpack
from sparkfusion.worker.task import TaskReport


class TaskServer:
    """Used by the thread that called `run`. Rows of a fed task wait here until those of a place are complete.

    Args:
        who: runs the task, in words.
        receive: waits for the task's next message. `send` answers it.
    """

    def __init__(
        self,
        who: str,
        receive: Callable[[], memoryview],
        send: Callable[[bytes], object],
        ends: TaskEnds,
        limit: int,
    ) -> None:
        self._who = who
        self._receive = receive
        self._send = send
        self._ends = ends
        self._limit = limit
        self._undelivered = FrameBuffer("")

    def serve(self) -> TaskReport:
        try:
            while True:
                kind, fields, blobs = unpack(self._receive(), self._limit)
                if kind == "report":
                    return report_of(fields)
                if kind == "error":
                    raise error_of(fields)
                self._do(kind, fields, blobs)
        finally:
            self._undelivered.clear()

    def _do(self, kind: str, fields: Fields, blobs: list[memoryview]) -> None:
        ends = self._ends
        if kind == "rows" and blobs:
            (ends.rows if ends.deliver is None else self._undelivered.add)(batch_of(blobs[0]))
        elif kind == "delivered" and ends.deliver is not None:
            ends.deliver(fields.integer("offset"), self._undelivered.frames())
        elif kind == "take":
            data = self._units().take(fields.integer("offset"))
            self._send(pack("end") if data is None else pack("units", {}, data))
        elif kind == "failed":
            self._units().failed(fields.integer("offset"))
        elif kind == "enough":
            self._units().enough()
        else:
            raise ProtocolError(f"{self._who} sent an unexpected {kind!r}")

    def _units(self) -> UnitSource:
        if self._ends.units is None:
            raise ProtocolError(f"{self._who} asks for units of a task that has none")
        return self._ends.units
