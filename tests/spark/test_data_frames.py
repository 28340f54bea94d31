"""Spark DataFrames as tables, and answers as Spark DataFrames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import udf
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import sparkfusion
from sparkfusion import Session, UserError
from tests.conftest import Connect

DISTRIBUTED = {"sparkfusion.bytes_per_partition": 1}


@pytest.fixture(params=["local", "spark"])
def session(request: pytest.FixtureRequest, connect: Connect, spark: SparkSession, tmp_path: Path) -> Session:
    """`events` is Spark's, in five partitions; `names` is Parquet; frames are in files, or in Spark's shuffle."""
    session = connect(DISTRIBUTED | {"sparkfusion.store": request.param})
    frame = spark.range(0, 1000, 1, 5).selectExpr(
        "id", "id % 7 as k", "cast(id as string) as text", "named_struct('x', id * 2) as nested"
    )
    session.register_spark("events", frame)
    for number in range(3):
        rows = {"k": list(range(number, 7, 3)), "name": [f"name {k}" for k in range(number, 7, 3)]}
        pq.write_table(pa.table(rows), tmp_path / f"{number}.parquet")
    session.register_parquet("names", str(tmp_path))
    return session


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select count(*) from events", [(1000,)]),
        ("select k, count(*), sum(id) from events where k < 2 group by k", [(0, 143, 71071), (1, 143, 71214)]),
        ("select max(nested['x']), max(text) from events", [(1998, "999")]),
        (
            "select name, count(*) from events e join names n on e.k = n.k where n.k > 5 group by name",
            [("name 6", 142)],
        ),
        ("select a.id from events a join events b on a.id = b.id + 997", [(997,), (998,), (999,)]),
        ("select count(*) from (select id from events union all select k from events)", [(2000,)]),
        ("select id from events order by id desc limit 2", [(998,), (999,)]),
        ("select count(*) from (select 1 from events)", [(1000,)]),
    ],
)
def test_a_data_frame_is_a_table(session: Session, query: str, expected: list[tuple[Any, ...]]) -> None:
    assert rows(session.sql(query).collect()) == expected


def test_only_the_columns_that_are_read_are_computed(connect: Connect, spark: SparkSession) -> None:
    session = connect(DISTRIBUTED)
    session.register_spark("t", spark.range(10).select("id", F.raise_error(F.lit("computed")).alias("never")))
    assert session.sql("select sum(id) as s from t").to_pydict() == {"s": [45]}
    with pytest.raises(sparkfusion.SparkfusionError, match="computed"):
        session.sql("select max(never) from t").collect()


def test_a_view_by_its_name_and_an_empty_one(connect: Connect, spark: SparkSession) -> None:
    spark.range(5).createOrReplaceTempView("five")
    session = connect(DISTRIBUTED)
    session.register_spark("t", "five")
    session.register_spark("none", spark.range(5).where("id > 9"))
    assert session.sql("select count(*) as n, (select count(*) from none) as e from t").to_pylist() == [
        {"n": 5, "e": 0}
    ]


def test_what_cannot_be_distributed_names_the_table(session: Session) -> None:
    numbers = "with recursive r as (select 0 as x union all select x + 1 from r where x < 2)"
    with pytest.raises(UserError, match="reads events from Spark, but cannot be distributed"):
        session.sql(f"{numbers} select * from r join events on x = k").collect()


def test_its_rows_are_not_found_missing_by_others(session: Session) -> None:
    with pytest.raises(Exception, match="Ipc error"):
        session.sql("select count(*) from events").to_datafusion().collect()


def test_an_embedded_session_has_no_spark(spark: SparkSession) -> None:
    with sparkfusion.connect() as session:
        with pytest.raises(UserError, match="does not run on Spark"):
            session.register_spark("t", spark.range(3))
        with pytest.raises(UserError, match="does not run on Spark"):
            session.sql("select 1").to_spark()


def test_what_is_no_data_frame_is_refused(session: Session) -> None:
    with pytest.raises(UserError, match=r"cannot register a builtins\.int as a Spark table"):
        session.register_spark("t", 3)


@pytest.mark.parametrize(
    "query",
    [
        "select k, count(*) as n, sum(id) as s from events group by k",
        "select name, count(*) as n from events join names using (k) group by name",
        "select id, row_number() over (partition by k order by id) as r from events",
        "select id, text from events where id % 10 = 0",
        "select k, name from names union all select k, text from events where id < 3",
        "select id from events where id < 0",
        "select count(*) as n from names",
        "select id, text from events order by text",
    ],
)
def test_an_answer_is_a_data_frame(session: Session, query: str) -> None:
    frame = session.sql(query)
    out = frame.to_spark()
    assert sorted(tuple(row) for row in out.collect()) == rows(frame.collect())


def test_an_answer_is_computed_by_spark_when_it_is_asked_for(session: Session, tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def note(values: pa.Array) -> pa.Array:
        with calls.open("a") as file:
            file.write("x")
        return values

    session.register_udf(udf(note, [pa.int64()], pa.int64(), "immutable", "note"))
    out = session.sql("select k, sum(note(id)) as s from events group by k").to_spark()
    assert not calls.exists()
    session.close()
    assert out.agg(F.sum("s")).collect()[0][0] == 499500
    assert calls.exists()


def test_rows_that_may_differ_are_made_once(session: Session) -> None:
    out = session.sql("select id from events limit 10").to_spark()
    assert out.count() == 10
    assert sorted(out.collect()) == sorted(out.collect())


def test_the_users_error_comes_with_our_words(session: Session) -> None:
    out = session.sql("select k, sum(1 / (id - 500)) as s from events group by k").to_spark()
    with pytest.raises(Exception, match="Divide by zero"):
        out.collect()
