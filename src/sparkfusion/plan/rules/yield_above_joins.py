"""A join can give many batches without ever yielding to the runtime, and then it cannot be cancelled.

This is https://github.com/apache/datafusion/issues/19358.
"""

from __future__ import annotations

from sparkfusion.plan.wire import PlanNode, kind, rewrite
from sparkfusion.plan.wire.build import cooperative
from sparkfusion.plan.wire.tree import JOINS


def yield_above_joins(root: PlanNode) -> PlanNode:
    """Put a cooperative node, which gives the runtime a turn now and then, above every join."""
    return rewrite(root, lambda node: cooperative(node) if kind(node) in JOINS else None)
