"""What a child process is told of a task: the worker's order, and what only the worker knows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparkfusion.exchange.sink import FileSink, Sink
from sparkfusion.exchange.store import BorrowedStore
from sparkfusion.transport.base import TaskEnds, TaskOrder
from sparkfusion.transport.codec import order_of, pack_order
from sparkfusion.transport.message import Fields, pack, unpack
from sparkfusion.transport.upward import reader_sink
from sparkfusion.worker.copy import CopySink


@dataclass(frozen=True)
class Places:
    """Directories of the worker's in which a child writes for one task.

    Attributes:
        frames_in_memory, frames: for frames, in memory-backed storage and on disk.
        memory_bytes: how much of the first the task may take.
        writes: for rows that are on their way to the user's files.
        spills: of this task alone.
    """

    frames_in_memory: str
    frames: str
    memory_bytes: int
    writes: str
    spills: str


@dataclass(frozen=True)
class ChildOrder:
    """One task for a child. The order's inputs have local paths, and its plan is the one to run."""

    order: TaskOrder
    places: Places

    def sink(self, ends: TaskEnds) -> Sink:
        """Where the task's rows go, in the child."""
        order, places = self.order, self.places
        if order.writes is not None:
            return CopySink(order.spec.key, BorrowedStore("", places.writes, 0), order.writes)
        if order.destination == "reader":
            return reader_sink(order.spec, ends)
        store = BorrowedStore(places.frames_in_memory, places.frames, places.memory_bytes)
        return FileSink(order.spec.key, store, order.compression)


def pack_child_order(order: ChildOrder) -> bytes:
    places = order.places
    fields = {
        "trust_python": order.order.spec.trust_python,
        "frames_in_memory": places.frames_in_memory,
        "frames": places.frames,
        "memory_bytes": places.memory_bytes,
        "writes": places.writes,
        "spills": places.spills,
    }
    return pack("task", fields, pack_order(order.order))


def child_order_of(fields: Fields, blobs: list[memoryview]) -> ChildOrder:
    places = Places(
        fields.text("frames_in_memory"),
        fields.text("frames"),
        fields.integer("memory_bytes"),
        fields.text("writes"),
        fields.text("spills"),
    )
    _, inner, parts = unpack(blobs[0], len(blobs[0]))
    order = order_of(inner, parts)
    spec = replace(order.spec, spill_directory=places.spills, trust_python=fields.flag("trust_python"))
    return ChildOrder(replace(order, spec=spec), places)
