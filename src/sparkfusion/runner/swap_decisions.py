"""Which side of a shuffle join is held in memory: decided when the exact sizes of both are known.

See docs/adr/0028-split-skip-and-swap-from-exact-sizes.md.
"""

from __future__ import annotations

from dataclasses import replace

from sparkfusion.config import ALWAYS
from sparkfusion.plan.stage import Stage
from sparkfusion.plan.swapped_joins import JoinSides, swap_joins
from sparkfusion.runner.adapt import shuffle_sizes
from sparkfusion.runner.join_decisions import JoinDecision
from sparkfusion.runner.query_state import Policy, QueryState


def swap_build_sides(state: QueryState, stage: Stage) -> tuple[QueryState, tuple[JoinDecision, ...]]:
    """Swap the sides of those joins of a stage whose build side turned out to be much larger than the other side.

    The inputs of the stage are complete, and it has not started.
    """
    policy = state.policy
    if not policy.swap_factor:
        return state, ()
    sizes = {exchange: sum(each) for exchange, each in shuffle_sizes(state, stage).items()}
    if not any(_is_better(build, probe, policy) for build in sizes.values() for probe in sizes.values()):
        return state, ()

    def is_better(sides: JoinSides) -> bool:
        known = sides.build in sizes and sides.probe in sizes
        return known and _is_better(sizes[sides.build], sizes[sides.probe], policy)

    plan, swapped = swap_joins(state.graph, stage.plan, is_better)
    number = {exchange.id: exchange.producer for exchange in state.graph.exchanges}
    reasons = tuple(
        f"sides swapped: the build side (stage {number[each.build]}) has {sizes[each.build]:,} bytes, "
        f"the probe side (stage {number[each.probe]}) {sizes[each.probe]:,}"
        for each in swapped
    )
    changed = replace(stage, plan=plan, decisions=(*stage.decisions, *reasons))
    decided = replace(state, graph=state.graph.with_stage(changed)) if swapped else state
    return decided, tuple(JoinDecision(stage.id, reason) for reason in reasons)


def _is_better(build: int, probe: int, policy: Policy) -> bool:
    """Whether the probe side is so much smaller that it should be held in memory instead. Small joins stay."""
    if policy.swap_factor == ALWAYS:
        return True
    return build > policy.bytes_per_partition and build >= policy.swap_factor * probe
