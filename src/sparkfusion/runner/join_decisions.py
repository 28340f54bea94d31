"""Shuffle join or broadcast join: decided when the exact size of the build side is known, before the probe side starts.

A probe side that is ready waits for its build side if that probably is the smaller one. Then either the stage of the
probe side becomes part of the join's stage, whose tasks each read the whole build side, or both sides stay shuffled.
See docs/adr/0024-a-shuffle-join-becomes-a-broadcast-join.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparkfusion.config import ALWAYS
from sparkfusion.errors import PlanTooDeepError
from sparkfusion.ids import StageId
from sparkfusion.plan.shuffle_joins import broadcast_build_side
from sparkfusion.plan.stage import ExchangeKind, Stage
from sparkfusion.runner.adapt import keeps_apart, layout_of
from sparkfusion.runner.query_state import Policy, QueryState

MEMORY_PER_BYTE = 8
"""Frames may be compressed, and a hash table takes memory as well."""
_HASHING = 10
"""Hashing a byte once more costs about this many times as much as reading a byte of the probe side's files. Measured at
TPC-H scale 1 in two tasks, over 209 MB: with a build side of 24 MB a query took 1.5 times as long, with 4 MB half as
long."""


@dataclass(frozen=True)
class JoinDecision:
    """What was decided about the join of a stage. `absorbed`: the stage of the probe side, which is now a part of
    it."""

    stage: StageId
    reason: str
    absorbed: StageId | None = None


@dataclass(frozen=True)
class JoinSizes:
    """What is known when a join is decided.

    `build` is exact: bytes of frames. `probe` is what the probe side reads, in `probe_tasks` tasks. `join_tasks` is how
    many tasks of one partition the join has if it stays a shuffle join. `width`: how many partitions run in each of the
    probe side's tasks, which hashes the build side once for them.
    """

    build: int
    probe: int
    probe_tasks: int
    join_tasks: int
    width: int = 1


def decide_joins(state: QueryState) -> tuple[QueryState, tuple[JoinDecision, ...]]:
    """Decide every join whose build side is complete and whose probe side could start now."""
    if not state.policy.adaptive_broadcast_bytes:
        return state, ()
    decisions: list[JoinDecision] = []
    for number in [stage.id for stage in state.graph.stages if stage.shuffle_join is not None]:
        stage = state.graph.stage(number)
        probe = _waiting_probe(state, stage)
        if probe is not None and _is_built(state, stage):
            state, decision = _decide(state, stage, probe)
            decisions.append(decision)
    return state, tuple(decisions)


def find_waiting_stages(state: QueryState) -> frozenset[StageId]:
    """The stages that could start, but wait until the build side of their join is complete."""
    if not state.policy.adaptive_broadcast_bytes:
        return frozenset()
    held: set[StageId] = set()
    for stage in state.graph.stages:
        probe = _waiting_probe(state, stage)
        if probe is not None and stage.shuffle_join is not None and not _is_built(state, stage):
            held |= {probe.id} if stage.shuffle_join.build_first or _is_forced(state.policy) else set()
    return frozenset(held)


def refuse_broadcast(sizes: JoinSizes, policy: Policy) -> str | None:
    """Why the join should stay a shuffle join; None if a broadcast join costs less."""
    limit = policy.adaptive_broadcast_bytes
    if _is_forced(policy):
        return None
    if sizes.build > limit:
        return f"more than sparkfusion.adaptive_broadcast_bytes ({limit:,})"
    if sizes.build * MEMORY_PER_BYTE > policy.task_memory:
        return f"too much for the memory of a task ({policy.task_memory:,} bytes)"
    needed = min(sizes.join_tasks, -(-(sizes.build + sizes.probe) // policy.bytes_per_partition))
    if sizes.probe_tasks * sizes.width < needed:
        return f"the probe side has too few tasks for this join ({sizes.probe_tasks})"
    more = sizes.build * (sizes.probe_tasks - 1)
    if more * _HASHING > sizes.probe:
        return f"{sizes.probe_tasks} tasks would hash {more:,} bytes more to save a shuffle of about {sizes.probe:,}"
    return None


def _decide(state: QueryState, stage: Stage, probe: Stage) -> tuple[QueryState, JoinDecision]:
    assert stage.shuffle_join is not None
    build = state.graph.producer_of(stage.shuffle_join.build)
    layout = layout_of(state, probe)
    sizes = JoinSizes(
        build=sum(manifest.bytes for manifest in state.manifests(build.id)),
        probe=_bytes_read(state, probe),
        probe_tasks=len(layout),
        join_tasks=stage.task_count,
        width=min(stage.partitions_per_task, len(layout[0])) if keeps_apart(probe, layout) else 1,
    )
    built = f"the build side (stage {build.id}) has {sizes.build:,} bytes"
    refused = refuse_broadcast(sizes, state.policy)
    if refused is None and len(stage.plan) + len(probe.plan) > state.policy.max_plan_bytes:
        refused = "but the plan of a task would be too large"
    if refused is None:
        reason = (
            f"broadcast join: {built}, which each of {sizes.probe_tasks} tasks reads; "
            f"the probe side (stage {probe.id}, reads {sizes.probe:,} bytes) is not shuffled"
        )
        try:
            graph = broadcast_build_side(state.graph, stage.id, reason)
            return replace(state, graph=graph), JoinDecision(stage.id, reason, absorbed=probe.id)
        except PlanTooDeepError:
            refused = "but the plan of a task would be nested too deep"
    reason = f"shuffle join: {built}, {refused}"
    graph = state.graph.with_stage(replace(stage, shuffle_join=None, decisions=(*stage.decisions, reason)))
    return replace(state, graph=graph), JoinDecision(stage.id, reason)


def _waiting_probe(state: QueryState, stage: Stage) -> Stage | None:
    """The stage of the probe side of a stage's join, if it could start now and has not started."""
    if stage.shuffle_join is None:
        return None
    probe = state.graph.producer_of(stage.shuffle_join.probe)
    return probe if not state.stage(probe.id).started and state.inputs_done(probe.inputs) else None


def _is_built(state: QueryState, stage: Stage) -> bool:
    assert stage.shuffle_join is not None
    return state.stage(state.graph.exchange(stage.shuffle_join.build).producer).done


def _is_forced(policy: Policy) -> bool:
    return policy.adaptive_broadcast_bytes == ALWAYS


def _bytes_read(state: QueryState, stage: Stage) -> int:
    """The bytes that a stage scans, and those of the shuffles that are divided among its tasks."""
    shuffles = [state.graph.exchange(each) for each in stage.inputs if each not in stage.collects]
    return stage.scan_bytes + sum(
        manifest.bytes
        for exchange in shuffles
        if exchange.kind is ExchangeKind.SHUFFLE
        for manifest in state.manifests(exchange.producer)
    )
