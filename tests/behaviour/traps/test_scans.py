"""Which task reads which file, how far, and where its rows go."""

from __future__ import annotations

import pytest

import sparkfusion.plan.isolate as isolate_module
from sparkfusion.plan.wire import decode, kind, walk
from sparkfusion.verify import assert_distributed_eq, compare_tables
from tests.behaviour.traps.conftest import Connected, allow, graph_of, kinds_in, without_rules
from tests.runners import LOCAL, SPARK


@pytest.mark.parametrize("target_partitions", [2, 5, 7])
def test_file_scans_share_one_work_queue(connected: Connected, target_partitions: int) -> None:
    session = connected(target_partitions=target_partitions)
    assert_distributed_eq(session, "select v, k from facts")
    assert session.config["datafusion.execution.enable_file_stream_work_stealing"] == "true"  # single node keeps it


def test_file_queue_without_handling_is_read_by_every_task(
    connected: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, "datafusion.execution.enable_file_stream_work_stealing")
    monkeypatch.setattr(isolate_module, "restrict", lambda node, partitions: None)
    frame = connected().sql("select v from facts")
    assert frame.collect().num_rows == 200 * graph_of(frame).task_count


def test_a_scan_with_a_limit_is_not_split(connected: Connected) -> None:
    sql = "select sum(n) as n from (select k, count(*) as n from (select k from single limit 30) group by k)"
    for target_partitions in (2, 5, 7):
        frame = connected(target_partitions=target_partitions).sql(sql)
        graph = graph_of(frame)
        scans = [
            (stage, node)
            for stage in graph.stages
            for node in walk(decode(stage.plan))
            if kind(node) == "parquet_scan" and node.parquet_scan.base_conf.HasField("limit")
        ]
        assert scans
        for stage, _ in scans:
            limited_again = {"local_limit", "coalesce_partitions"} & {kind(n) for n in walk(decode(stage.plan))}
            assert stage.task_count == 1 or limited_again
        assert frame.collect().to_pylist() == [{"n": 30}]


SPREAD = "select k, sum(v) as total from (select k, v from single limit 40) group by k"
SMALL_BATCHES: dict[str, object] = {"datafusion.execution.batch_size": 10}


def test_round_robin_depends_on_scheduling(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    session = connected(SMALL_BATCHES)
    assert_distributed_eq(session, SPREAD)
    allow(monkeypatch, "datafusion.optimizer.enable_round_robin_repartition")  # then the rule has to do it
    assert_distributed_eq(session, SPREAD)
    assert_distributed_eq(session, session.sql("select v, k from facts").repartition(5))
    assert "repartition" in kinds_in(graph_of(session.sql(SPREAD)))  # the hash one stays
    assert "RoundRobin" not in session.sql(SPREAD).explain_text()


@pytest.mark.runners(LOCAL, *SPARK, reason="a Flight worker refuses such a task: it has no output partition")
def test_round_robin_without_handling_differs(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    without_rules(monkeypatch, "drop_random_repartition")
    allow(monkeypatch, "datafusion.optimizer.enable_round_robin_repartition")
    frame = connected(SMALL_BATCHES).sql(SPREAD)
    assert not compare_tables(frame.to_datafusion().to_arrow_table(), frame.collect()).equal
