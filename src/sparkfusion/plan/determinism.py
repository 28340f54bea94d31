"""Whether running a part of a plan again gives the same rows, and whether it may run once for each task.

See docs/traps.md#work-that-must-run-once.
"""

from __future__ import annotations

from sparkfusion.plan.feed_scans import feed_of
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.wire import PlanNode, body, children, encode, file_scan_conf, kind, partition_count, walk
from sparkfusion.plan.wire.tree import FILE_SCANS

_VOLATILE_MARKS = (b"\x0a\x06random", b"\x0a\x04uuid", b"\x0a\x07shuffle", b"\x8c\x08volatile")
_REPEATABLE = FILE_SCANS | {
    "projection",
    "filter",
    "coalesce_batches",
    "cooperative",
    "memory_scan",
    "placeholder_row",
    "empty",
}
_SMALL_SCAN_BYTES = 1024 * 1024


def has_fetch(node: PlanNode) -> bool:
    """Whether the node itself has a row limit. Which rows it returns then depends on scheduling."""
    name = kind(node)
    conf = file_scan_conf(node)
    if conf is not None:
        return conf.HasField("limit")
    if name in ("global_limit", "local_limit"):
        return True
    if name in ("sort", "sort_preserving_merge"):
        return bool(body(node).fetch >= 0)
    if name in ("filter", "coalesce_batches", "coalesce_partitions", "memory_scan", "hash_join"):
        return bool(body(node).HasField("fetch"))
    return name == "aggregate" and node.aggregate.HasField("limit")


def is_volatile(node: PlanNode) -> bool:
    """Whether any expression below calls a volatile function, such as `random()`.

    Our view of the wire format does not decode expressions. So this searches the bytes for the encoded name of a
    built-in volatile function, or the pickled volatility of a Python function. A column with such a name also matches,
    which only costs a re-run.
    """
    data = encode(node)
    return any(mark in data for mark in _VOLATILE_MARKS)


def is_deterministic(node: PlanNode) -> bool:
    return not any(has_fetch(each) for each in walk(node)) and not is_volatile(node)


def may_repeat(node: PlanNode) -> bool:
    """Whether each task may compute the node for itself: it is cheap, row-wise, and always gives the same rows.

    See docs/traps.md#repeated-limit.
    """
    return _is_cheap(node) and is_deterministic(node)


def _is_cheap(node: PlanNode) -> bool:
    if exchange_of(node) is not None:
        return True
    if kind(node) == "coalesce_partitions" and exchange_of(node.coalesce_partitions.input) is not None:
        return True
    if kind(node) not in _REPEATABLE or partition_count(node) != 1:
        return False
    if feed_of(node) is not None:
        return False
    conf = file_scan_conf(node)
    if conf is not None and sum(file.size for group in conf.file_groups for file in group.files) > _SMALL_SCAN_BYTES:
        return False
    return all(_is_cheap(child) for child in children(node))
