"""What must run exactly once, and what may be repeated."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from datafusion import udf

import sparkfusion.plan.cut as cut_module
from sparkfusion import Session, UserError
from sparkfusion.plan.gate import _REFUSED
from sparkfusion.plan.wire import PlanNode, decode, kind, walk
from sparkfusion.verify import Outcome, assert_distributed_eq, verify_query
from tests.behaviour.traps.conftest import Connected, allow, assert_single_node, graph_of, kinds_in

SCALAR_SUBQUERY = "select k, count(*) as n from facts where v > (select avg(v) from events) group by k"


def test_scalar_subqueries_become_joins(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, SCALAR_SUBQUERY)
    assert "scalar_subquery" not in kinds_in(graph_of(session.sql(SCALAR_SUBQUERY)))


def test_the_gate_refuses_a_scalar_subquery_that_is_left(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery")
    assert_single_node(connected().sql(SCALAR_SUBQUERY), "subquery")


def test_scalar_subquery_without_handling_fails(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery")
    monkeypatch.delitem(_REFUSED, "scalar_subquery")
    assert verify_query(connected(), SCALAR_SUBQUERY).outcome is not Outcome.PASSED


ELSEWHERE = {
    "ORDER BY": "select k, v from facts order by v - {}, k, v limit 3",
    "aggregate": "select k, sum(v - {}) as s from facts group by k",
    "GROUP BY": "select v > {} as g, count(*) as n from facts group by v > {}",
    "window": "select v, max(v - {}) over (partition by k) as n from facts",
    "ON": "select count(e.v) as n from facts f left join events e on f.k = e.k and f.v > {}",
    "nested": "select sum(v - (select max(v) from events where v < {})) as s from facts",
}


@pytest.mark.parametrize("place", ELSEWHERE)
def test_scalar_subqueries_that_cannot_become_joins(connected: Connected, place: str) -> None:
    session = connected()
    sql = ELSEWHERE[place].replace("{}", "(select avg(v) from events)")
    assert_distributed_eq(session, sql, require_distributed=False)


def test_scalar_subqueries_of_several_rows_are_an_error(connected: Connected) -> None:
    session = connected()
    for query in ELSEWHERE.values():
        with pytest.raises(UserError, match="more than one row"):
            session.sql(query.replace("{}", "(select v from events)")).collect()


ONE_RANDOM_VALUE = (
    "select count(distinct q.r) as n from (select random() as r, v from single limit 1) q join facts f on q.v <= f.v"
)


def test_a_limited_or_volatile_side_runs_once(connected: Connected) -> None:
    session = connected()
    assert session.sql(ONE_RANDOM_VALUE).collect().to_pylist() == [{"n": 1}]
    limited = "select f.k, count(*) as n from (select k from events limit 20) q join facts f on f.k = q.k group by f.k"
    graph = graph_of(session.sql(limited))
    with_fetch = [stage for stage in graph.stages if any(_stops_early(node) for node in walk(decode(stage.plan)))]
    assert with_fetch
    for stage in with_fetch:
        local = {kind(node) for node in walk(decode(stage.plan)) if _stops_early(node)} <= {"local_limit"} | _SCANS
        assert local or stage.task_count == 1
        assert not stage.deterministic


def test_rows_of_a_limit_add_up(connected: Connected) -> None:
    sql = "select sum(n) as n from (select k, count(*) as n from (select k from facts limit 77) group by k)"
    for target_partitions in (2, 5, 7):
        frame = connected(target_partitions=target_partitions).sql(sql)
        assert frame.distribution().distributed
        assert frame.collect().to_pylist() == [{"n": 77}]


def test_limited_side_without_handling_differs_in_every_task(
    connected: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_module, "may_repeat", lambda *args: True)
    (row,) = connected().sql(ONE_RANDOM_VALUE).collect().to_pylist()
    assert row["n"] > 1


_SCANS = {"parquet_scan"}


def _stops_early(node: PlanNode) -> bool:
    if kind(node) == "parquet_scan":
        return node.parquet_scan.base_conf.HasField("limit")
    return kind(node) in ("local_limit", "global_limit") or (
        kind(node) == "coalesce_partitions" and node.coalesce_partitions.HasField("fetch")
    )


@pytest.mark.parametrize(
    ("sql", "deterministic"),
    [
        ("select k, v from facts where v > 3", True),
        ("select k, random() as r from facts", False),
        ("select k, uuid() as r from facts", False),
        ("select k, jitter(v) as r from facts", False),
        ("select k from facts limit 150", False),
    ],
)
def test_stages_say_whether_they_may_be_repeated(connected: Connected, sql: str, deterministic: bool) -> None:
    session = connected()
    _register_jitter(session)
    stages = graph_of(session.sql(sql)).stages
    assert all(stage.deterministic for stage in stages) is deterministic


def test_a_volatile_function_runs_once(connected: Connected) -> None:
    session = connected()
    _register_jitter(session)
    assert session.sql(ONE_RANDOM_VALUE.replace("random()", "jitter(v)")).collect().to_pylist() == [{"n": 1}]


def _register_jitter(session: Session) -> None:
    def jitter(column: pa.Array) -> pa.Array:
        return pa.array([random.random() for _ in column], pa.float64())

    session.register_udf(udf(jitter, [pa.int64()], pa.float64(), "volatile", name="jitter"))
