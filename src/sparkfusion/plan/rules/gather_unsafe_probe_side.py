"""Null-aware anti joins and nested-loop joins that emit build rows keep state for all probe partitions.

See docs/traps.md#not-in and docs/traps.md#nested-loop-joins.
"""

from __future__ import annotations

from sparkfusion.plan.gate import NotDistributableError
from sparkfusion.plan.joins import emits_build_rows
from sparkfusion.plan.row_order import may_be_ordered, nodes_with_order_need
from sparkfusion.plan.wire import PlanNode, body, partition_count
from sparkfusion.plan.wire.build import coalesce


def gather_unsafe_probe_side(root: PlanNode) -> PlanNode:
    """Gather the probe side of such a join into one task, which then sees every match."""
    for node, order_needed in nodes_with_order_need(root):
        if not emits_build_rows(node) or partition_count(body(node).right) == 1:
            continue
        right = body(node).right
        if order_needed and may_be_ordered(right):
            raise NotDistributableError(
                "the query relies on the sort order of a join's input, and tasks do not keep it"
            )
        right.CopyFrom(coalesce(right))
    return root
