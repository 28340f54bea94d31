"""Check the fields of an order before it is used: their values, and whether they fit together."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pyarrow as pa

from sparkfusion.errors import ProtocolError
from sparkfusion.plan.feed_scans import feeds_read
from sparkfusion.plan.sources import exchange_of, placeholder_of
from sparkfusion.plan.wire import PlanNode, file_scan_conf, kind, walk
from sparkfusion.worker.task import TaskOrder

_MOST = (1 << 63) - 1
_MOST_ID = (1 << 31) - 1
_COMPRESSIONS = frozenset({"none", "lz4", "zstd"})


def check_shape(order: TaskOrder) -> None:
    """Raise if a number is out of range, or a word is not one of those allowed."""
    for what, number, least, most in _numbers(order):
        if not least <= number <= most:
            raise ProtocolError(f"an order's {what} cannot be {number}")
    if not (math.isfinite(order.patience) and order.patience > 0):
        raise ProtocolError(f"an order's patience cannot be {order.patience}")
    if order.compression not in _COMPRESSIONS:
        raise ProtocolError(f"an order's compression cannot be {order.compression!r}")
    if order.feed is not None and not order.feed.files and order.reader is None:
        raise ProtocolError(f"the feed of table {order.feed.table!r} has no reader")


def check_sources(root: PlanNode, order: TaskOrder) -> None:
    """Raise if the plan reads an exchange or a feed that the order does not have."""
    given = {(each.exchange, each.group) for each in order.inputs}
    for node in walk(root):
        conf = file_scan_conf(node)
        paths = [file.path for group in conf.file_groups for file in group.files] if conf is not None else []
        try:
            exchange = exchange_of(node)
        except ValueError:
            raise ProtocolError("a plan reads an exchange that has no number") from None
        if exchange is not None and not all(placeholder_of(path) in given for path in paths):
            raise ProtocolError(f"the plan reads an input of exchange {exchange} that is not in the task order")
    try:
        fed = feeds_read(root)
    except ValueError:
        raise ProtocolError("a plan reads a feed that has no number") from None
    if len(fed) != (order.feed is not None):
        raise ProtocolError("the plan reads another feed than the one in the task order")


def check_rows(root: PlanNode) -> None:
    """Raise if rows in the plan are not Arrow messages, or are shorter than they claim: DataFusion allocates the memory
    that they claim."""
    for node in walk(root):
        for rows in node.memory_scan.partitions if kind(node) == "memory_scan" else ():
            try:
                for _ in pa.ipc.MessageReader.open_stream(rows):
                    pass
            except (pa.ArrowException, OSError):
                raise ProtocolError("the rows of a memory table in a plan cannot be read") from None


def _numbers(order: TaskOrder) -> Iterator[tuple[str, int, int, int]]:
    yield "memory limit", order.memory_limit, 0, _MOST
    yield "number of partitions", order.partitions, 1, _MOST_ID
    yield "memory for frames", order.store_memory, -1, _MOST
    yield "place in its feed", order.first, 0, _MOST
    for each in order.inputs:
        yield "exchange", each.exchange, 0, _MOST_ID
        yield "group", each.group, 0, _MOST_ID
        for file in each.files:
            yield "file size", file.size, 0, _MOST
