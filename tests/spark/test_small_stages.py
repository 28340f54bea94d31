"""A stage that reads little runs in the driver, also if the frames of others are in Spark's shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import DataFrame, Session
from sparkfusion.ids import StageId
from sparkfusion.runner.spark.shuffle_store import ShuffleStore
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, write_parts
from tests.conftest import Connect

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


def open_tables(connect: Connect, home: Path, config: dict[str, object]) -> Session:
    """Facts in several files, and names in one that is much smaller."""
    facts = write_parts(home)
    pq.write_table(pa.table({"id": pa.array(range(7), pa.int64()), "name": list("abcdefg")}), home / "names.parquet")
    session = connect(config)
    session.register_parquet("facts", facts)
    session.register_parquet("names", home / "names.parquet")
    return session


def stages_of(frame: DataFrame) -> set[StageId]:
    graph = frame.distribution().graph
    assert graph is not None
    return {stage.id for stage in graph.stages}


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


def test_a_stage_that_reads_rows_of_spark_runs_on_spark(
    connect: Connect, tmp_path: Path, on_spark: set[StageId]
) -> None:
    """However few they are: the driver does not have them."""
    session = open_tables(connect, tmp_path, SHUFFLED)
    session.config["sparkfusion.small_stage_bytes"] = (tmp_path / "names.parquet").stat().st_size
    frame = session.sql("select k, count(*) as n from facts group by k")
    assert_distributed_like_single_node(frame)
    assert on_spark == stages_of(frame)
