"""Make joins yield: a join can return many batches without yielding to the async runtime, and then it cannot be
cancelled.

This is https://github.com/apache/datafusion/issues/19358.
"""

from __future__ import annotations

from sparkfusion.plan.wire import PlanNode, kind, rewrite
from sparkfusion.plan.wire.build import cooperative
from sparkfusion.plan.wire.tree import JOINS


def yield_above_joins(root: PlanNode) -> PlanNode:
    """Put a cooperative node, which regularly yields to the async runtime, above every join."""
    return rewrite(root, lambda node: cooperative(node) if kind(node) in JOINS else None)
