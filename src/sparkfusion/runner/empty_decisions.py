"""Stages that are not run, because they give no rows for certain, or because only such stages read them.

Decided when an exchange turns out to have no rows. See docs/adr/0028-split-skip-and-swap-from-exact-sizes.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparkfusion.exchange.manifest import Manifest
from sparkfusion.ids import ExchangeId, StageId, TaskKey
from sparkfusion.plan.feed_scans import feeds_read
from sparkfusion.plan.no_rows import gives_no_rows
from sparkfusion.plan.stage import Stage, StageGraph
from sparkfusion.plan.wire import decode
from sparkfusion.runner.adapt import keeps_apart, slices_of
from sparkfusion.runner.query_state import QueryState, StageState


@dataclass(frozen=True)
class StageSkip:
    """A stage is not run, or not to its end. `running`: its attempts that have to be stopped."""

    stage: StageId
    reason: str
    running: tuple[TaskKey, ...] = ()


def skip_empty_stages(state: QueryState) -> tuple[QueryState, tuple[StageSkip, ...]]:
    """Skip every stage of which it is certain now that its rows are not needed."""
    if not state.policy.skip_empty_stages:
        return state, ()
    empty = frozenset(each.id for each in state.graph.exchanges if _is_empty(state, each.producer))
    if not empty:
        return state, ()
    skips: list[StageSkip] = []
    for stage in state.graph.stages:  # producers first: one skipped stage may be the reason for the next
        known = empty & frozenset(stage.inputs)
        if not known or state.stage(stage.id).started or _gives_to_consumer(state.graph, stage):
            continue
        if gives_no_rows(stage.plan, known):
            names = ", ".join(str(state.graph.exchange(each).producer) for each in sorted(known))
            state = _skip(state, stage, f"skipped: it gives no rows, because stage {names} gave none", skips)
            empty |= {stage.output}
    for stage in reversed(state.graph.stages):
        if not state.stage(stage.id).done and not _is_needed(state, stage, empty):
            state = _skip(state, stage, "skipped: no stage that reads its output can return rows", skips)
    return state, tuple(skips)


def _is_empty(state: QueryState, producer: StageId) -> bool:
    """Whether a stage is done, gave no rows, and never will: it is not computed again from other rows."""
    stage = state.stage(producer)
    return stage.done and not stage.has_rows and all(each.deterministic for each in _below(state.graph, producer))


def _below(graph: StageGraph, number: StageId) -> list[Stage]:
    """All stages that a stage reads, directly or not."""
    found: dict[StageId, Stage] = {}
    waiting = [number]
    while waiting:
        for exchange in graph.stage(waiting.pop()).inputs:
            producer = graph.producer_of(exchange)
            if producer.id not in found:
                found[producer.id] = producer
                waiting.append(producer.id)
    return list(found.values())


def _is_needed(state: QueryState, stage: Stage, empty: frozenset[ExchangeId]) -> bool:
    """Whether anything that is not skipped needs the rows of a stage. A stage that reads a feed always runs."""
    graph, output = state.graph, stage.output
    if _gives_to_consumer(graph, stage):
        return True
    if output in graph.head.inputs and not _is_pointless(graph.head.plan or b"", graph.head.inputs, empty):
        return True
    for reader in (each for each in graph.stages if output in each.inputs):
        if not state.stage(reader.id).skipped and not _is_pointless(reader.plan, reader.inputs, empty):
            return True
    return bool(feeds_read(decode(stage.plan)))


def _is_pointless(plan: bytes, inputs: tuple[ExchangeId, ...], empty: frozenset[ExchangeId]) -> bool:
    """Whether a plan gives no rows, whatever comes from those of its inputs that are not complete."""
    known = empty & frozenset(inputs)
    return bool(known) and gives_no_rows(plan, known)


def _gives_to_consumer(graph: StageGraph, stage: Stage) -> bool:
    """Whether the stage's rows go to the consumer. Such a stage always runs: it may write files even without rows."""
    return graph.head.streams and stage.output in graph.head.inputs


def _skip(state: QueryState, stage: Stage, reason: str, skips: list[StageSkip]) -> QueryState:
    """The state in which all tasks of the stage are done and have no rows."""
    before = state.stage(stage.id)
    if not before.started:
        layout = slices_of(stage)
        before = StageState.of(layout, apart=keeps_apart(stage, layout))
    keys = [TaskKey(state.query, stage.id, index, task.attempt) for index, task in enumerate(before.tasks)]
    running = tuple(key for key, task in zip(keys, before.tasks, strict=True) if task.running)
    tasks = tuple(
        replace(task, running=False, manifest=Manifest(key)) for key, task in zip(keys, before.tasks, strict=True)
    )
    after = replace(before, tasks=tasks, unfinished=0, idle=0, skipped=True)
    skips.append(StageSkip(stage.id, reason, running))
    graph = state.graph.with_stage(replace(stage, decisions=(*stage.decisions, reason)))
    return replace(state, graph=graph, stages={**state.stages, stage.id: after})
