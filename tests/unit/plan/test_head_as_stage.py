"""A head that becomes a stage."""

from __future__ import annotations

import pytest
from datafusion import SessionContext

from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, Stage, StageGraph, with_head_as_stage
from tests.unit.plan.plans import NO_BROADCAST, plan

STAGE = Stage(1, b"scan", 3, (), 1, mergeable=False, deterministic=True)
GATHER = Exchange(1, ExchangeKind.GATHER, 1, 1, ("a",))


def test_a_head_with_a_plan_becomes_a_stage_of_one_task() -> None:
    graph = with_head_as_stage(StageGraph((STAGE,), (GATHER,), Head((1,), b"merge", deterministic=False)))
    last = graph.stages[-1]
    assert (last.id, last.plan, last.task_count, last.inputs, last.deterministic) == (2, b"merge", 1, (1,), False)
    assert graph.head.streams
    assert graph.producer_of(graph.head.inputs[0]) is last
    assert graph.exchange(last.output).kind is ExchangeKind.GATHER


def test_a_head_without_a_plan_stays() -> None:
    graph = StageGraph((STAGE,), (GATHER,), Head((1,), fetch=3))
    assert with_head_as_stage(graph) is graph


def test_a_limit_at_the_head_makes_a_graph_unrepeatable() -> None:
    assert StageGraph((STAGE,), (GATHER,), Head((1,))).repeatable
    assert not StageGraph((STAGE,), (GATHER,), Head((1,), fetch=3)).repeatable
    assert not StageGraph((STAGE,), (GATHER,), Head((1,), b"merge", deterministic=False)).repeatable


QUERIES = {
    "order": "select k, v from t order by v",
    "one row": "select count(*) as n, sum(v) as s from t",
    "order above a join": "select t.v, u.s from t join u on t.k = u.k order by t.v",
    "top of groups": "select k, sum(v) as s from t group by k order by s desc limit 2",
    "union of heads": "select max(v) as m from t union all select min(v) from u",
    "a join with what was gathered": "select t.v from t join (select max(v) as m from u) x on t.v < x.m order by t.v",
}


@pytest.mark.parametrize("options", [{}, NO_BROADCAST], ids=["broadcast", "shuffle"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_settled_graph_is_a_graph_like_any_other(query: str, options: dict[str, str]) -> None:
    """Ids are unique, producers come before consumers, and only the head's input streams to the reader."""
    before = distribute(plan(query, options), SchemaProbe(SessionContext()))
    graph = with_head_as_stage(before)
    assert (before.head.plan is None) == (graph is before)
    stages, exchanges = [stage.id for stage in graph.stages], [exchange.id for exchange in graph.exchanges]
    assert len(set(stages)) == len(stages)
    assert len(set(exchanges)) == len(exchanges)
    assert graph.stages[: len(before.stages)] == before.stages
    made: set[int] = set()
    for stage in graph.stages:
        assert set(stage.inputs) <= made
        made.add(stage.output)
    assert graph.head.streams
    assert graph.producer_of(graph.head.inputs[0]) is graph.stages[-1]
    assert stages[-1] == max(stages), "whoever looks for the last stage takes the highest number"
    assert (graph.head.skip, graph.head.fetch) == (before.head.skip, before.head.fetch)
    assert graph.repeatable == before.repeatable
