"""What a child process is told about a task: the worker's order, and what only the worker knows."""

from __future__ import annotations

from sparkfusion.transport.codec import order_of, pack_order
from sparkfusion.transport.message import Fields, pack, unpack
from sparkfusion.worker.server.task_processes import ChildDirectories, ChildOrder


def pack_child_order(order: ChildOrder) -> bytes:
    directories = order.directories
    fields = {
        "trust_python": order.trust_python,
        "frames_in_memory": directories.frames_in_memory,
        "frames": directories.frames,
        "memory_bytes": directories.memory_bytes,
        "writes": directories.writes,
        "spills": directories.spills,
    }
    return pack("task", fields, pack_order(order.order))


def child_order_of(fields: Fields, blobs: list[memoryview]) -> ChildOrder:
    directories = ChildDirectories(
        fields.text("frames_in_memory"),
        fields.text("frames"),
        fields.integer("memory_bytes"),
        fields.text("writes"),
        fields.text("spills"),
    )
    _, inner, parts = unpack(blobs[0], len(blobs[0]))
    return ChildOrder(order_of(inner, parts), directories, fields.flag("trust_python"))
