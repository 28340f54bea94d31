"""Parts of a plan that run first, as stages of their own, so that the rest of the query takes less time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sparkfusion.plan.column_lineage import SchemaOf
from sparkfusion.plan.key_set_choice import KeySetPolicy
from sparkfusion.plan.key_sets import insert_key_sets
from sparkfusion.plan.shared_aggregates import share_aggregates
from sparkfusion.plan.stage import KeySet
from sparkfusion.plan.wire import PlanNode


@dataclass(frozen=True)
class FirstStages:
    """Which parts run first.

    Attributes:
        key_sets: when key sets reduce scans; None for never.
        least_shared_bytes: an aggregate that the query contains several times is computed once if it reads at least
            this many bytes; None for never.
    """

    key_sets: KeySetPolicy | None = None
    least_shared_bytes: int | None = None


class MakeStage(Protocol):
    """Makes a stage of a plan, and returns a scan of its rows. `decisions`: why it is a stage of its own."""

    def __call__(
        self, plan: PlanNode, *, key_set: KeySet | None = None, decisions: tuple[str, ...] = ()
    ) -> PlanNode: ...


def make_first_stages(root: PlanNode, schema_of: SchemaOf, make_stage: MakeStage, policy: FirstStages) -> None:
    """Make stages of the parts that run first, and let the plan read their rows, in place."""

    def reduce(plan: PlanNode) -> None:
        if policy.key_sets is not None:
            insert_key_sets(plan, schema_of, lambda source, keys: make_stage(source, key_set=keys), policy.key_sets)

    def make_shared(plan: PlanNode, decision: str) -> PlanNode:
        reduce(plan)
        return make_stage(plan, decisions=(decision,))

    if policy.least_shared_bytes is not None:
        share_aggregates(root, schema_of, make_shared, policy.least_shared_bytes)
    reduce(root)
