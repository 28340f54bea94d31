"""Change the number of a stage's tasks while the query runs, if its consumers allow it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparkfusion.ids import ExchangeId, StageId
from sparkfusion.plan.sources import exchange_of, set_groups
from sparkfusion.plan.stage import ExchangeKind, Stage, StageGraph
from sparkfusion.plan.wire import PlanNode, children, decode, encode, kind, walk

_MERGES = frozenset({"coalesce_partitions", "sort_preserving_merge"})


def may_have_any_tasks(graph: StageGraph, stage: Stage, plan_of: Callable[[StageId], PlanNode]) -> bool:
    """Whether a stage may have any number of tasks, because its consumers read a shuffle or merge all tasks."""
    kind_of_output = graph.exchange(stage.output).kind
    if kind_of_output is ExchangeKind.SHUFFLE:
        return True
    if stage.task_count == 1 or kind_of_output is ExchangeKind.FORWARD:
        return False
    plans = [plan_of(each.id) for each in graph.stages if stage.output in each.inputs]
    head = graph.head
    plans += [decode(head.plan)] if stage.output in head.inputs and head.plan is not None else []
    return all(_is_merged(plan, stage.output) for plan in plans)


def with_groups(graph: StageGraph, exchange: ExchangeId, tasks: int) -> StageGraph:
    """The graph in which the consumers of an exchange read this many producer tasks; nothing changes for a shuffle."""
    if graph.exchange(exchange).kind is ExchangeKind.SHUFFLE:
        return graph
    for stage in graph.stages:
        if exchange in stage.inputs:
            graph = graph.with_stage(replace(stage, plan=_regroup(stage.plan, exchange, tasks)))
    head = graph.head
    if head.plan is not None and exchange in head.inputs:
        graph = replace(graph, head=replace(head, plan=_regroup(head.plan, exchange, tasks)))
    return graph


def _is_merged(root: PlanNode, exchange: ExchangeId) -> bool:
    readers = [node for node in walk(root) if any(exchange_of(child) == exchange for child in children(node))]
    return bool(readers) and all(kind(node) in _MERGES for node in readers)


def _regroup(plan: bytes, exchange: ExchangeId, tasks: int) -> bytes:
    root = decode(plan)
    for node in walk(root):
        if exchange_of(node) == exchange:
            set_groups(node, exchange, tasks)
    return encode(root)
