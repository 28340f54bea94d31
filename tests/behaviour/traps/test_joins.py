"""Joins that wait for other partitions, need one side whole, or hash keys."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import sparkfusion.plan.cut as cut_module
import sparkfusion.plan.isolate as isolate_module
import sparkfusion.session.planner as planner_module
from sparkfusion import Session
from sparkfusion.plan.distribute import ISOLATION_OPTIONS, distribute
from sparkfusion.plan.stage import ExchangeKind, StageGraph
from sparkfusion.plan.wire import PlanNode, decode, kind, walk
from sparkfusion.runner.query_state import QueryState
from sparkfusion.verify import Outcome, assert_distributed_eq, verify_query
from tests.behaviour.traps.conftest import (
    PARTITIONED_JOINS,
    Connected,
    allow,
    assert_single_node,
    graph_of,
    run_alone,
    without_rules,
)


def test_dynamic_filters_wait_for_sibling_partitions(connected: Connected) -> None:
    sql = "select facts.v, events.v as w from facts join events on facts.k = events.k"
    assert_distributed_eq(connected(), sql)
    partitioned = connected(PARTITIONED_JOINS)
    assert_distributed_eq(partitioned, sql)
    assert "DynamicFilter" not in partitioned.sql(sql).explain_text()


@pytest.mark.runners("local", "spark-local", reason="it hangs before a frame is made; Spark kills its workers then")
@pytest.mark.parametrize("config", [{}, PARTITIONED_JOINS], ids=["collect left", "partitioned"])
def test_dynamic_filters_without_handling_hang(
    connected: Connected, monkeypatch: pytest.MonkeyPatch, config: dict[str, object]
) -> None:
    for option in ISOLATION_OPTIONS:
        if "dynamic_filter" in option:
            allow(monkeypatch, option)
    monkeypatch.setattr(isolate_module, "restrict", lambda node, partitions: None)
    sql = "select facts.v, events.v as w from facts join events on facts.k = events.k"
    assert run_alone(connected(config), sql, seconds=1.0) == []


BUILD_EMITTING = {
    "left": "select e.v, f.v as w from events e left join facts f on f.k = e.k",
    "full": "select e.v, f.v as w from events e full join facts f on f.k = e.k",
    "semi": "select v from events where k in (select k from facts)",
    "anti": "select v from events e where not exists (select 1 from facts f where f.k = e.k)",
    "intersect": "select k from events intersect select k from facts",
    "except": "select k from events except select k from facts",
}


@pytest.mark.parametrize("sql", BUILD_EMITTING.values(), ids=BUILD_EMITTING)
def test_collected_left_join_keeps_matches_per_instance(connected: Connected, sql: str) -> None:
    assert_distributed_eq(connected(), sql)
    assert_distributed_eq(connected({"sparkfusion.merge_small_partitions": False}, target_partitions=5), sql)


def test_mark_join_keeps_matches_per_instance(connected: Connected) -> None:
    assert_distributed_eq(connected(), "select v from events where k in (select k from facts) or v < 30")


@pytest.mark.parametrize("sql", BUILD_EMITTING.values(), ids=BUILD_EMITTING)
def test_matched_rows_without_handling_differ(connected: Connected, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    # the second rule would catch what the first one leaves
    without_rules(monkeypatch, "partition_unsafe_build_side", "gather_unsafe_probe_side")
    assert verify_query(connected(), sql).outcome is Outcome.WRONG_ANSWER


NULL_AWARE = "select v from events where k not in (select k from facts)"


def test_null_aware_anti_join(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, NULL_AWARE)
    with_null = "select v from events where k not in (select case when v = 3 then null else k end from facts)"
    assert_distributed_eq(session, with_null)
    assert session.sql(with_null).collect().num_rows == 0


def test_null_aware_anti_join_without_handling_differs(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    without_rules(monkeypatch, "gather_unsafe_probe_side")
    assert verify_query(connected(), NULL_AWARE).outcome is Outcome.WRONG_ANSWER


NESTED_LOOP = {
    "left": "select e.v, f.v as w from events e left join facts f on e.v < f.v - 500 and f.k > e.k",
    "full": "select e.v, f.v as w from events e full join facts f on e.v < f.v - 500 and f.k > e.k",
}


@pytest.mark.parametrize("sql", NESTED_LOOP.values(), ids=NESTED_LOOP)
def test_nested_loop_join_emits_build_rows(connected: Connected, sql: str) -> None:
    assert_distributed_eq(connected(), sql)


@pytest.mark.parametrize("sql", NESTED_LOOP.values(), ids=NESTED_LOOP)
def test_nested_loop_join_without_handling_differs(
    connected: Connected, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    without_rules(monkeypatch, "gather_unsafe_probe_side")
    assert verify_query(connected(), sql).outcome is Outcome.WRONG_ANSWER


CROSS = "select f.v, e.v as w from facts f cross join events e"


def test_the_left_side_is_whole_in_every_task(connected: Connected) -> None:
    session = connected()
    assert_distributed_eq(session, CROSS)
    graph = graph_of(session.sql(CROSS))
    broadcast = next(each for each in graph.exchanges if each.kind is ExchangeKind.BROADCAST)
    reader = next(stage for stage in graph.stages if broadcast.id in stage.inputs)
    assert reader.task_count > 1
    assert graph.producer_of(broadcast.id).task_count > 1


@pytest.mark.runners("local", "spark-local", "spark-shared", reason="takes files away; Spark's shuffle has none")
def test_collected_left_without_handling_differs(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    every_group = QueryState.files

    def first_group_only(self: QueryState, exchange: int, group: int, portion: object = None) -> Any:
        is_shuffle = self.graph.exchange(exchange).kind is ExchangeKind.SHUFFLE
        return every_group(self, exchange, group) if is_shuffle or group == 0 else []

    monkeypatch.setattr(QueryState, "files", first_group_only)
    assert verify_query(connected(), CROSS).outcome is Outcome.WRONG_ANSWER


def _join_of_views(session: Session, *, right: pa.DataType) -> str:
    """A shuffled join on string views; with another right type its scan is exchanged behind the planner's back."""
    names = [f"name {i}" for i in range(40)]
    half = len(names) // 2
    for table, kind_of_key in (("views", pa.string_view()), ("others", right)):
        column = pa.array(names).cast(kind_of_key)
        batches = [[pa.record_batch({"s": column[:half]})], [pa.record_batch({"s": column[half:]})]]
        session.register_record_batches(table, batches)
    return "select a.s from views a join views b on a.s = b.s"


@pytest.fixture
def mixed_keys(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> tuple[Session, str]:
    session = connected(PARTITIONED_JOINS)
    sql = _join_of_views(session, right=pa.string())
    other = decode(session.sql("select s from others").to_datafusion().execution_plan().to_bytes(session.context))
    plain = distribute

    def with_another_key_type(root: PlanNode, *args: Any) -> StageGraph:
        join = next(node for node in walk(root) if kind(node) == "hash_join")
        scan = next(node for node in walk(join.hash_join.right) if kind(node) == "memory_scan")
        scan.CopyFrom(next(node for node in walk(other) if kind(node) == "memory_scan"))
        return plain(root, *args)

    monkeypatch.setattr(planner_module, "distribute", with_another_key_type)
    return session, sql


def test_string_views_hash_unlike_strings(connected: Connected) -> None:
    session = connected(PARTITIONED_JOINS)
    sql = _join_of_views(session, right=pa.string())
    assert_distributed_eq(session, sql)
    assert_distributed_eq(session, "select a.s from views a join others b on a.s = b.s")


def test_the_cut_refuses_mixed_key_types(mixed_keys: tuple[Session, str]) -> None:
    session, sql = mixed_keys
    assert_single_node(session.sql(sql), "have different key types: ['string'] and ['string_view']")


def test_mixed_key_types_without_handling_miss_each_other(
    mixed_keys: tuple[Session, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, sql = mixed_keys
    monkeypatch.setattr(cut_module._Cutter, "_check_key_types", lambda self, node: None)
    frame = session.sql(sql)
    assert frame.distribution().distributed
    try:
        found = frame.collect().num_rows
    except Exception:
        return
    assert found < 40
