"""Which rows each task of a Spark job reads, if frames are in Spark's shuffle."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkfusion.runner.spark.rows import RddPartitions, RowPlan, collect, shuffle
from sparkfusion.runner.spark.spark_task import row_key
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, write_parts
from tests.conftest import Connect

SHUFFLED = {
    **DISTRIBUTED,
    "sparkfusion.store": "spark",
    "sparkfusion.merge_small_partitions": False,
    "sparkfusion.broadcast_bytes": 0,
    "sparkfusion.adaptive_broadcast_bytes": 0,
    "sparkfusion.key_set_bytes": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}
SHAPES = {
    "some tasks read a shuffle, others only files": (
        "select k, count(*) as n from t group by k union all select k, v from t where v < 50"
    ),
    "tasks read different shuffles": (
        "select k, count(*) as n from t group by k union all select v % 3, sum(v) from t group by v % 3"
    ),
    "tasks read partitions of two shuffles side by side": (
        "select a.k, a.n, b.s from (select k, count(*) as n from t group by k) a"
        " join (select v % 9 as k, sum(v) as s from t group by v % 9) b on a.k = b.k"
    ),
    "all tasks read the same rows": "select v, n from t, (select count(*) as n from t where v > 3990) where v < n",
}


@pytest.mark.parametrize("query", SHAPES.values(), ids=SHAPES)
def test_tasks_get_their_rows(connect: Connect, tmp_path: Path, query: str) -> None:
    session = connect(SHUFFLED)
    session.register_parquet("t", write_parts(tmp_path))
    assert_distributed_like_single_node(session.sql(query))


def produce(records: Iterable[bytes]) -> Iterator[bytes]:
    """On the executor: one row for partition 0."""
    list(records)
    yield row_key(0)
    yield b"row"


def tell(records: Iterable[bytes]) -> Iterator[bytes]:
    """On the executor: what the task got, its record among it."""
    yield b" ".join(sorted(each if each == b"row" else pickle.loads(each)[0] for each in records))


def test_some_tasks_may_read_no_rows_of_others(spark: SparkSession) -> None:
    """TPC-DS query 49, a union, has such a stage."""
    context = spark.sparkContext
    shuffled = shuffle(context, RowPlan(context, [b"first"], [[]]).run(produce), 1)
    plan = RowPlan(context, [b"reads", b"has none"], [[RddPartitions(shuffled, (0,))], []])
    assert sorted(collect(context, plan.run(tell))) == [b"has none", b"reads row"]
