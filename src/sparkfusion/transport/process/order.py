"""What a child process is told of a task: the worker's order, and what only the worker knows."""

from __future__ import annotations

from dataclasses import dataclass

from sparkfusion.exchange.store import BorrowedStore
from sparkfusion.transport.codec import order_of, pack_order
from sparkfusion.transport.message import Fields, pack, unpack
from sparkfusion.worker.carry_out import TaskStores
from sparkfusion.worker.session import Surroundings
from sparkfusion.worker.task import TaskOrder


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

    def stores(self) -> TaskStores:
        frames = BorrowedStore(self.frames_in_memory, self.frames, self.memory_bytes)
        return TaskStores(frames, BorrowedStore("", self.writes, 0))


@dataclass(frozen=True)
class ChildOrder:
    """One task for a child. The order's inputs have local paths, and its plan is the one to run."""

    order: TaskOrder
    places: Places
    trust_python: bool

    def surroundings(self) -> Surroundings:
        return Surroundings(self.order.memory_limit, self.places.spills, self.trust_python)


def pack_child_order(order: ChildOrder) -> bytes:
    places = order.places
    fields = {
        "trust_python": order.trust_python,
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
    return ChildOrder(order_of(inner, parts), places, fields.flag("trust_python"))
