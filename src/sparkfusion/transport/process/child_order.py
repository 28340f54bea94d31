"""What a child process is told about a task: the worker's order, and what only the worker knows."""

from __future__ import annotations

from dataclasses import asdict

from sparkfusion.transport.codec import order_of, pack_order
from sparkfusion.transport.message import Fields, pack, unpack
from sparkfusion.worker.server.task_processes import ChildDirectories, ChildOrder


def pack_child_order(order: ChildOrder) -> bytes:
    return pack("task", {"trust_python": order.trust_python, **asdict(order.directories)}, pack_order(order.order))


def child_order_of(fields: Fields, blobs: list[memoryview]) -> ChildOrder:
    _, inner, parts = unpack(blobs[0], len(blobs[0]))
    return ChildOrder(order_of(inner, parts), fields.read(ChildDirectories), fields.flag("trust_python"))
