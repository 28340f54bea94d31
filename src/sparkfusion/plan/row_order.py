"""Which parts of a plan rely on the order of rows: a rewrite that loses order must not touch those."""

from __future__ import annotations

from collections.abc import Iterator

from sparkfusion.plan.wire import PlanNode, children, file_scan_conf, kind, walk

_RELY_ON_ORDER = frozenset({"sort_preserving_merge", "window", "sort_merge_join", "aggregate"})
_LOSE_ORDER = frozenset({"sort", "repartition", "coalesce_partitions"})


def nodes_with_order_need(root: PlanNode) -> Iterator[tuple[PlanNode, bool]]:
    """Every node, children first, with whether something above it may rely on the order of its rows."""
    yield from _visit(root, needed=False)


def _visit(node: PlanNode, *, needed: bool) -> Iterator[tuple[PlanNode, bool]]:
    name = kind(node)
    below = name in _RELY_ON_ORDER or (needed and name not in _LOSE_ORDER)
    for child in children(node):
        yield from _visit(child, needed=below)
    yield node, needed


def may_be_ordered(node: PlanNode) -> bool:
    """Whether the node's rows may have a sort order that the planner knows."""
    for each in walk(node):
        conf = file_scan_conf(each)
        if conf is not None and conf.output_ordering:
            return True
        if kind(each) == "memory_scan" and each.memory_scan.sort_information:
            return True
        if kind(each) in ("sort", "sort_preserving_merge", "sort_merge_join", "window"):
            return True
    return False
