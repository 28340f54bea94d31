"""A stage that reads little runs in the driver, also if the frames of others are in Spark's shuffle."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import DataFrame, Session
from sparkfusion.ids import StageId, TaskKey
from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, Stage, StageGraph
from sparkfusion.runner.spark.shuffle_store import ShuffleStore
from sparkfusion.runner.spark.spark_task import ToRows
from sparkfusion.worker.task import TaskOrder
from tests.behaviour.parts import DISTRIBUTED, ROWS, assert_distributed_like_single_node, write_parts
from tests.conftest import Connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LARGE = 20_000
"""Rows of each file of facts, which is too much for the driver."""
BROADCAST = {**DISTRIBUTED, "sparkfusion.store": "spark"}
"""Frames are in Spark's shuffle: executors may have no file of the driver."""
SHUFFLED = {
    **BROADCAST,
    "sparkfusion.broadcast_bytes": 0,
    "sparkfusion.adaptive_broadcast_bytes": 0,
    "sparkfusion.key_set_bytes": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}
JOINED = "select name, count(*) as n, sum(v) as s from facts join names on k = id where id <> 3 group by name"


@pytest.fixture
def on_spark(monkeypatch: pytest.MonkeyPatch) -> set[StageId]:
    """The stages that ran as Spark jobs."""
    found: set[StageId] = set()
    run = ShuffleStore.run

    def watch(store: ShuffleStore, plan: Any, function: Any, tasks: Sequence[Any]) -> Any:
        found.add(tasks[0].key.stage)
        return run(store, plan, function, tasks)

    monkeypatch.setattr(ShuffleStore, "run", watch)
    return found


def open_tables(connect: Connect, home: Path, config: dict[str, object], rows: int = ROWS) -> Session:
    """Facts in several files of so many rows, and names in one that is much smaller."""
    facts = write_parts(home, rows=rows)
    pq.write_table(pa.table({"id": pa.array(range(7), pa.int64()), "name": list("abcdefg")}), home / "names.parquet")
    session = connect(config)
    session.register_parquet("facts", facts)
    session.register_parquet("names", home / "names.parquet")
    return session


def stages_of(frame: DataFrame) -> set[StageId]:
    return {stage.id for stage in _stages(frame)}


def scans_of(frame: DataFrame) -> set[StageId]:
    """The stages that read tables only."""
    return {stage.id for stage in _stages(frame) if not stage.inputs}


def _stages(frame: DataFrame) -> tuple[Stage, ...]:
    graph = frame.distribution().graph
    assert graph is not None
    return graph.stages


@pytest.mark.parametrize("config", [BROADCAST, SHUFFLED], ids=["broadcast", "shuffled"])
def test_rows_of_a_small_stage_travel_with_the_tasks_that_read_them(
    connect: Connect, tmp_path: Path, on_spark: set[StageId], config: dict[str, object]
) -> None:
    session = open_tables(connect, tmp_path, config)
    session.config["sparkfusion.small_stage_bytes"] = (tmp_path / "names.parquet").stat().st_size
    frame = session.sql(JOINED)
    assert_distributed_like_single_node(frame)
    stages = stages_of(frame)
    assert on_spark, "facts are read by Spark"
    assert on_spark < stages, "names are read in the driver"


def test_a_query_of_small_stages_needs_no_spark_job(connect: Connect, tmp_path: Path, on_spark: set[StageId]) -> None:
    session = open_tables(connect, tmp_path, {**SHUFFLED, "sparkfusion.small_stage_bytes": "1GiB"})
    assert_distributed_like_single_node(session.sql(JOINED))
    assert not on_spark


def test_a_stage_that_reads_many_rows_of_spark_runs_on_spark(
    connect: Connect, tmp_path: Path, on_spark: set[StageId]
) -> None:
    session = open_tables(connect, tmp_path, SHUFFLED)
    session.config["sparkfusion.small_stage_bytes"] = (tmp_path / "names.parquet").stat().st_size
    frame = session.sql("select k, count(*) as n from facts group by k")
    assert_distributed_like_single_node(frame)
    assert on_spark == stages_of(frame)


@pytest.mark.parametrize(
    "sql",
    [
        "select k, count(*) as n, sum(v) as s from facts group by k",
        "select k, count(*) as n from facts where v < 0 group by k",  # no rows at all
        "select count(*) as n, sum(v) as s from facts",
        "select k, n from (select k, count(*) as n from facts group by k) where n > 3 order by n desc, k limit 3",
        "select name, count(*) as n from (select distinct k, v % 9 from facts) join names on k = id group by name",
    ],
)
def test_few_rows_of_spark_come_to_the_driver_with_the_answers_of_their_tasks(
    connect: Connect, tmp_path: Path, on_spark: set[StageId], sql: str
) -> None:
    """So the stages that read them need no Spark jobs."""
    session = open_tables(connect, tmp_path, SHUFFLED, LARGE)
    session.config["sparkfusion.small_stage_bytes"] = 200_000
    frame = session.sql(sql)
    assert_distributed_like_single_node(frame)
    assert on_spark, "facts are read by Spark"
    assert on_spark <= scans_of(frame), "and all the rest runs in the driver"


def test_rows_that_are_copied_to_the_driver_can_be_read_by_spark(
    connect: Connect, tmp_path: Path, on_spark: set[StageId]
) -> None:
    session = open_tables(connect, tmp_path, SHUFFLED, LARGE)
    session.config["sparkfusion.small_stage_bytes"] = 200_000
    counted = "select k, count(*) as n from facts group by k"
    frame = session.sql(f"select v, n from facts join ({counted}) as counts on facts.v = counts.k")
    assert_distributed_like_single_node(frame)
    assert scans_of(frame) < on_spark == stages_of(frame), "the join reads few counts, and many rows of facts"


def test_output_that_the_driver_reads_is_copied_again_however_large_it_is(spark: SparkSession) -> None:
    """A task that is run again may write more than before, if its rows depend on chance."""
    graph = StageGraph(
        (Stage(1, b"", 1, (), 1, False, False), Stage(2, b"", 1, (1,), 2, False, True)),
        tuple(Exchange(number, ExchangeKind.GATHER, number, 1, ()) for number in (1, 2)),
        Head((2,), b"plan"),
    )
    store = ShuffleStore(spark.sparkContext, "q", lambda: graph, 1_000)
    try:
        task = TaskOrder(TaskKey("q", 1, 0), b"", ())
        assert store.outlet([task, task]) == ToRows(keyed=True, copy_bytes=500)
        store.expect_here(2)
        assert store.outlet([task]) == ToRows(keyed=True, copy_bytes=sys.maxsize)
    finally:
        store.close()
