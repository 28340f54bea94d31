"""Rules make a plan safe to isolate. Each is a function plan → plan in a file of its own name; RULES is their order.

A rule works in place on the copy it is given and returns it. A plan that no rule can make safe is refused by raising
`NotDistributableError`, never changed into something that may answer differently.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkfusion.plan.rules.drop_random_repartition import drop_random_repartition
from sparkfusion.plan.rules.gather_unsafe_probe_side import gather_unsafe_probe_side
from sparkfusion.plan.rules.partition_unsafe_build_side import partition_unsafe_build_side
from sparkfusion.plan.rules.push_rowwise_below_gather import push_rowwise_below_gather
from sparkfusion.plan.rules.yield_above_joins import yield_above_joins
from sparkfusion.plan.wire import PlanNode

Rule = Callable[[PlanNode], PlanNode]

RULES: tuple[Rule, ...] = (
    drop_random_repartition,
    partition_unsafe_build_side,
    gather_unsafe_probe_side,
    push_rowwise_below_gather,
    yield_above_joins,
)


def apply_rules(root: PlanNode) -> PlanNode:
    for rule in RULES:
        root = rule(root)
    return root
