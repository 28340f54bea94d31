"""What Spark's user interface shows of our jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.behaviour.parts import DISTRIBUTED, write_parts
from tests.conftest import Connect

TEXT = """
    select k, sum(v) as s
    from t group by k
"""


def jobs_since(spark: SparkSession, count: int) -> list[Any]:
    """The jobs that came after so many, as Spark's user interface has them; the newest one first in Spark's list."""
    listed: Any = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    return [listed.apply(index) for index in range(listed.size() - count)]


def count_jobs(spark: SparkSession) -> int:
    return int(spark.sparkContext._jsc.sc().statusStore().jobsList(None).size())


def test_jobs_show_the_sql_and_what_each_stage_does(connect: Connect, spark: SparkSession, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    session.sql("select count(*) from t where v > 5").collect()  # the executors have been checked
    before = count_jobs(spark)
    with session.sql(TEXT).stream() as running:
        running.read_all()
        query = running.id
    jobs = sorted(jobs_since(spark, before), key=lambda job: job.jobId())
    sql = "select k, sum(v) as s from t group by k"
    assert [job.description().get() for job in jobs] == [
        f"sparkfusion query {query}, stage 1 of 2 (scan parts/0.parquet and 3 more, aggregate): {sql}",
        f"sparkfusion query {query}, stage 2 of 2 (rows of stage 1, aggregate): {sql}",
    ]


def test_a_query_without_sql_is_a_dataframe(connect: Connect, spark: SparkSession, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    session.table("t").collect()
    (newest, *_) = jobs_since(spark, 0)
    assert newest.description().get().endswith(": a DataFrame")
