"""A head that becomes a stage."""

from __future__ import annotations

from sparkfusion.plan.settle import settle_head
from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, Stage, StageGraph

STAGE = Stage(1, b"scan", 3, (), 1, mergeable=False, deterministic=True)
GATHER = Exchange(1, ExchangeKind.GATHER, 1, 1, ("a",))


def test_a_head_with_a_plan_becomes_a_stage_of_one_task() -> None:
    graph = settle_head(StageGraph((STAGE,), (GATHER,), Head((1,), b"merge", deterministic=False)))
    last = graph.stages[-1]
    assert (last.id, last.plan, last.task_count, last.inputs, last.deterministic) == (2, b"merge", 1, (1,), False)
    assert graph.head.streams
    assert graph.producer_of(graph.head.inputs[0]) is last
    assert graph.exchange(last.output).kind is ExchangeKind.GATHER


def test_a_head_without_a_plan_stays() -> None:
    graph = StageGraph((STAGE,), (GATHER,), Head((1,), fetch=3))
    assert settle_head(graph) is graph


def test_a_limit_at_the_head_makes_a_graph_unrepeatable() -> None:
    assert StageGraph((STAGE,), (GATHER,), Head((1,))).repeatable
    assert not StageGraph((STAGE,), (GATHER,), Head((1,), fetch=3)).repeatable
    assert not StageGraph((STAGE,), (GATHER,), Head((1,), b"merge", deterministic=False)).repeatable
