"""Rows of a query in a table of Spark's catalog: each mode, computed once, and micro-batches of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import udf
from pyspark.sql import DataFrame, SparkSession

from sparkfusion import Session, UserError
from tests.behaviour.probes import Counter
from tests.conftest import Connect
from tests.spark.catalog_rows import database

SPLIT = {"sparkfusion.bytes_per_partition": 1}


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with database(spark, "sf_writes", tmp_path_factory.mktemp("writes")) as name:
        spark.sql(f"create table {name}.source using parquet as select id, id % 3 as k from range(0, 30, 1, 3)")
        yield name


@pytest.fixture(scope="module")
def session(connect_shared: Connect) -> Session:
    return connect_shared(SPLIT)


def rows(spark: SparkSession, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in spark.table(table).collect())


def test_every_mode(session: Session, spark: SparkSession, db: str) -> None:
    counted = session.sql(f"select k, count(*) as n from {db}.source group by k")
    assert counted.distribution().graph is not None
    counted.write_spark_table(f"{db}.counted", partition_by="k", format="orc")
    assert rows(spark, f"{db}.counted") == [(10, 0), (10, 1), (10, 2)]  # Spark puts partition columns last
    assert {"Provider": "orc"}.items() <= _described(spark, f"{db}.counted").items()
    with pytest.raises(UserError, match=f"cannot write table '{db}.counted': it exists already"):
        counted.write_spark_table(f"{db}.counted")
    counted.write_spark_table(f"{db}.counted", mode="ignore")
    assert len(rows(spark, f"{db}.counted")) == 3
    counted.write_spark_table(f"{db}.counted", mode="append", format="orc", partition_by="k")
    assert len(rows(spark, f"{db}.counted")) == 6
    counted.write_spark_table(f"{db}.counted", mode="overwrite")
    assert rows(spark, f"{db}.counted") == [(0, 10), (1, 10), (2, 10)]
    assert session.sql(f"select sum(n) as n from {db}.counted").to_pydict() == {"n": [30]}
    with pytest.raises(UserError, match=f"Spark cannot write table '{db}.counted'"):
        session.sql("select 1 as other, 2 as columns, 3 as here").write_spark_table(f"{db}.counted", mode="append")


def _described(spark: SparkSession, table: str) -> dict[str, str]:
    return {row.col_name: row.data_type for row in spark.sql(f"describe extended {table}").collect()}


@pytest.mark.parametrize("limit", ["", " limit 20"])
def test_the_query_is_computed_once(session: Session, spark: SparkSession, db: str, tmp_path: Path, limit: str) -> None:
    """Also if it runs before Spark writes, as with a LIMIT."""
    counter = Counter(tmp_path / "calls")

    def seen(values: pa.Array) -> pa.Array:
        counter.add(len(values))
        return values

    session.register_udf(udf(seen, [pa.int64()], pa.int64(), "volatile", "seen"))
    try:
        query = session.sql(f"select seen(id) as id from (select id from {db}.source{limit})")
        query.write_spark_table(f"{db}.once")
        written, computed = len(rows(spark, f"{db}.once")), counter.value
        assert written == (20 if limit else 30)
        assert written <= computed <= 30  # DataFusion may compute a column before a LIMIT
        query.write_spark_table(f"{db}.once", mode="ignore")
        assert counter.value == computed
    finally:
        session.deregister_udf("seen")
        spark.sql(f"drop table {db}.once")


@pytest.mark.parametrize("way", ["auto", "spark"])
def test_a_table_that_the_query_reads_is_not_overwritten(
    connect: Connect, spark: SparkSession, db: str, way: str
) -> None:
    session = connect({**SPLIT, "sparkfusion.spark_catalog": way})
    query = session.sql(f"select k, count(*) as n from {db}.source group by k")
    with pytest.raises(UserError, match=f"cannot overwrite table '{db}.source': the query reads it"):
        query.write_spark_table(f"{db}.source", mode="overwrite")
    assert spark.table(f"{db}.source").count() == 30
    spark.sql(f"create table {db}.kept using parquet as select 1 as k, 1 as n")
    session.register_spark("numbers", spark.range(5))
    session.sql("select id as k, id as n from numbers").write_spark_table(f"{db}.kept", mode="overwrite")
    assert rows(spark, f"{db}.kept") == [(n, n) for n in range(5)]
    session.sql(f"select k, n from {db}.kept").cache().write_spark_table(f"{db}.kept", mode="overwrite")
    assert rows(spark, f"{db}.kept") == [(n, n) for n in range(5)]
    spark.sql(f"drop table {db}.kept")


@pytest.mark.long
def test_micro_batches_of_a_stream_run_through_sparkfusion(
    session: Session, spark: SparkSession, db: str, tmp_path: Path
) -> None:
    for part in range(3):
        spark.range(part * 10, part * 10 + 10, 1, 1).write.parquet(str(tmp_path / "in"), mode="append")
    batches = []

    def run_batch(batch: DataFrame, number: int) -> None:
        session.register_spark("batch", batch)
        try:
            counted = session.sql(f"select {number} as batch, id % 2 as odd, count(*) as n from batch group by id % 2")
            counted.write_spark_table(f"{db}.batches", mode="append")
        finally:
            session.deregister_table("batch")
        batches.append(number)

    stream = spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    writer = stream.writeStream.foreachBatch(run_batch).trigger(availableNow=True)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    assert query.awaitTermination(300)
    assert batches == [0, 1, 2]
    assert rows(spark, f"{db}.batches") == [(batch, odd, 5) for batch in range(3) for odd in range(2)]
