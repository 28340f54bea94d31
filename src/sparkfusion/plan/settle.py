"""Move the head's plan into a last stage, for callers that need all rows to come from tasks."""

from __future__ import annotations

from dataclasses import replace

from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, Stage, StageGraph


def settle_head(graph: StageGraph) -> StageGraph:
    """The same graph with the head's plan as a last stage of one task."""
    head = graph.head
    if head.plan is None:
        return graph
    number = max(stage.id for stage in graph.stages) + 1
    last = Stage(
        id=number,
        plan=head.plan,
        task_count=1,
        inputs=head.inputs,
        output=number,
        mergeable=False,
        deterministic=head.deterministic,
    )
    gather = Exchange(number, ExchangeKind.GATHER, number, partitions=1, column_names=())
    return replace(graph, stages=(*graph.stages, last), exchanges=(*graph.exchanges, gather), head=Head((number,)))
