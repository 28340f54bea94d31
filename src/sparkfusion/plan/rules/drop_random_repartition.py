"""Drop round-robin repartitions: where they send a row depends on scheduling, so isolated tasks would disagree.

See docs/traps.md#round-robin-repartition.
"""

from __future__ import annotations

from sparkfusion.plan.wire import PlanNode, copy_of, kind, rewrite


def drop_random_repartition(root: PlanNode) -> PlanNode:
    """Replace every repartition that is not by hash by its input; it only spreads the work, which is already divided
    among tasks."""
    return rewrite(root, _input_of_random)


def _input_of_random(node: PlanNode) -> PlanNode | None:
    if kind(node) != "repartition" or node.repartition.partitioning.WhichOneof("method") == "hash":
        return None
    return copy_of(node.repartition.input)
