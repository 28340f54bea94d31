"""A plan with the same schema and no rows at its leaves: safe to decode and run, touches no file."""

from __future__ import annotations

from sparkfusion.plan.wire import PlanNode, copy_of, file_scan_conf, kind, rewrite
from sparkfusion.plan.wire.build import local_limit


def void(node: PlanNode) -> PlanNode:
    """A copy of the plan that reads nothing. Operators stay, so a scalar aggregate still gives its one row."""
    return rewrite(copy_of(node), _empty_leaf)


def _empty_leaf(node: PlanNode) -> PlanNode | None:
    conf = file_scan_conf(node)
    if conf is not None:
        del conf.file_groups[:]
        conf.file_groups.add()
        return None
    if kind(node) in ("memory_scan", "placeholder_row", "generate_series"):
        return local_limit(node, 0)
    return None
