"""A plan with the same schema and no rows: safe to decode and run, touches no file, evaluates nothing."""

from __future__ import annotations

from sparkfusion.plan.wire import PlanNode, copy_of, file_scan_conf, kind, rewrite
from sparkfusion.plan.wire.build import local_limit, union


def void(node: PlanNode) -> PlanNode:
    """A copy of the plan in which no node returns a row, not even an aggregate without groups."""
    return rewrite(copy_of(node), _without_rows)


def _without_rows(node: PlanNode) -> PlanNode | None:
    conf = file_scan_conf(node)
    if conf is not None:
        del conf.file_groups[:]
        conf.file_groups.add()
        return None
    if kind(node) == "interleave":  # it requires a declared partitioning, which an emptied scan lacks
        return union(node.interleave.inputs)
    gives_rows = kind(node) in ("memory_scan", "placeholder_row", "generate_series")
    if gives_rows or (kind(node) == "aggregate" and not node.aggregate.group_expr):
        return local_limit(node, 0)
    return None
