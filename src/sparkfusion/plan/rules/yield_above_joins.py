"""A join can give many batches without ever yielding to the runtime, and then it cannot be cancelled.

This is https://github.com/apache/datafusion/issues/19358.
"""

from __future__ import annotations

from sparkfusion.plan.wire import PlanNode, kind, rewrite
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.tree import JOINS


def yield_above_joins(root: PlanNode) -> PlanNode:
    """Put a cooperative node, which gives the runtime a turn now and then, above every join."""
    return rewrite(root, _cooperative)


def _cooperative(node: PlanNode) -> PlanNode | None:
    if kind(node) not in JOINS:
        return None
    made = pb.PlanNode()
    made.cooperative.input.CopyFrom(node)
    return made
