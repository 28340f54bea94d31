"""What a child process is told of a task: the worker's order, and what only the worker knows."""

from __future__ import annotations

from sparkfusion.transport.codec import order_of, pack_order
from sparkfusion.transport.message import Fields, pack, unpack
from sparkfusion.worker.server.task_processes import ChildOrder, Places


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
