"""Which stages have wide tasks: tasks that run several partitions of their stage in one instance of its plan."""

from __future__ import annotations

from dataclasses import replace

from sparkfusion.errors import InternalError
from sparkfusion.plan.feed_scans import feeds_read
from sparkfusion.plan.isolate import keep_apart
from sparkfusion.plan.stage import ExchangeKind, Stage, StageGraph
from sparkfusion.plan.table_parts import parts_of
from sparkfusion.plan.wire import decode, kind, walk


def widen(graph: StageGraph, tasks: int, most: int) -> StageGraph:
    """The same graph, in which a task runs several partitions of its stage where that is possible. Called after the
    cut.

    Args:
        tasks: how many tasks can run at once. A stage with few partitions has fewer of them in a task, so that every
            slot gets a task.
        most: the most partitions of a task.
    """
    if most == 1:
        return graph
    return replace(graph, stages=tuple(_widen(stage, graph, tasks, most) for stage in graph.stages))


def _widen(stage: Stage, graph: StageGraph, tasks: int, most: int) -> Stage:
    width = min(most, -(-stage.task_count // tasks))
    return replace(stage, partitions_per_task=width) if width > 1 and _may_be_wide(stage, graph) else stage


def _may_be_wide(stage: Stage, graph: StageGraph) -> bool:
    """Whether a task can keep several partitions apart, from all its inputs to its output.

    A stage whose rows are streamed keeps tasks of one partition. Every attempt then writes its frames in the same
    order, so a new attempt can continue after those that the consumer has.
    """
    exchanges = [graph.exchange(each) for each in (*stage.inputs, stage.output)]
    if stage.task_count == 1 or any(each.kind is ExchangeKind.FORWARD for each in exchanges):
        return False
    if graph.head.streams and stage.output in graph.head.inputs:
        return False
    root = decode(stage.plan)
    if feeds_read(root) or any(parts_of(node) for node in walk(root)):
        return False
    try:
        keep_apart(root.repartition.input if kind(root) == "repartition" else root, (0, 1))
    except InternalError:
        return False
    return True
