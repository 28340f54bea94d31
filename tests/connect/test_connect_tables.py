"""Connect DataFrames as tables, and results as Connect DataFrames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.connect.session import SparkSession

from sparkfusion import ExternalError, Session, SparkfusionError, UserError
from sparkfusion.runner.spark.connect.connect_tables import ConnectTables
from tests.behaviour.parts import DISTRIBUTED, rows_of, write_parts
from tests.conftest import Connect
from tests.runners import some_first

pytestmark = pytest.mark.long  # it starts a server with a JVM of its own

COLUMNS = (
    "id",
    "id % 3 as flag",
    "if(id % 4 = 0, null, cast(id as string)) as txt",
    "cast(id as decimal(12, 2)) as amount",
    "timestamp_seconds(id) as at",
    "date_add(date '2020-01-01', cast(id as int)) as day",
    "array(id, null) as xs",
    "map('a', id) as pairs",
    "named_struct('b', id % 2 = 0, 'c', cast(id as double)) as nested",
)


def events(spark: SparkSession, rows: int = 200) -> Any:
    """Rows in six partitions, the first of them empty."""
    return spark.range(-40, rows, 1, 6).where("id >= 0").selectExpr(*COLUMNS)


@pytest.fixture(scope="module")
def shared(connect_shared: Connect, remote_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Session:
    session = connect_shared(DISTRIBUTED)
    session.register_spark("events", events(remote_spark))
    session.register_parquet("t", write_parts(tmp_path_factory.mktemp("parts")))
    return session


def test_rows_of_every_type_are_those_of_spark(shared: Session, remote_spark: SparkSession) -> None:
    found = shared.sql("select * from events").collect()
    assert rows_of(found) == rows_of(events(remote_spark).toArrow())
    assert found.schema.names == [name.split(" as ")[-1] for name in COLUMNS]


QUERIES = {
    "aggregate": ("select flag, count(*), max(txt), sum(amount) from events group by flag", None),
    "filters": (
        "select id from events where flag = 1 and (txt like '1%' or id in (4, 7)) and day < date '2020-03-01'",
        "where ",
    ),
    "join with itself": ("select a.id from events a join events b on a.id = b.id + 1 where b.flag = 0", None),
    "join with files": ("select e.id, t.v from events e join t on e.id = t.v where e.id < 50", None),
    "no columns": ("select count(*) from events", None),
    "no rows": ("select flag, count(*) from events where id < 0 group by flag", "where id < 0"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", some_first({name: name for name in QUERIES}, ("filters", "join with files")))
def test_queries_answer_like_spark_sql(shared: Session, remote_spark: SparkSession, name: str) -> None:
    query, asked = QUERIES[name]
    events(remote_spark).createOrReplaceTempView("events")
    remote_spark.range(0, 4000).selectExpr("id as v").createOrReplaceTempView("t")
    frame = shared.sql(query)
    assert frame.distribution().distributed
    assert rows_of(frame.collect()) == rows_of(remote_spark.sql(query).toArrow())
    assert asked is None or f"from Spark: events {asked}" in frame.explain_text()


def test_a_limit_is_passed_to_spark(shared: Session) -> None:
    frame = shared.sql("select id, flag from events where flag = 2 limit 5")
    assert "from Spark: events where flag = 2 limit 5" in frame.explain_text()
    found = frame.to_pylist()
    assert len(found) == 5
    assert {row["flag"] for row in found} == {2}
    assert len({row["id"] for row in found}) == 5


@pytest.mark.long
def test_more_partitions_than_parts_and_fewer(connect: Connect, remote_spark: SparkSession) -> None:
    session = connect(DISTRIBUTED)
    session.register_spark("many", remote_spark.range(0, 500, 1, 40))
    session.register_spark("one", remote_spark.range(0, 500, 1, 1))
    for name in ("many", "one"):
        assert session.sql(f"select count(*) as n, sum(id) as s from {name}").to_pylist() == [{"n": 500, "s": 124750}]
    many = session.sql("select id from many").stream()
    assert sum(batch.num_rows for batch in many) == 500


def test_a_table_or_view_by_its_name(connect: Connect, remote_spark: SparkSession) -> None:
    session = connect(DISTRIBUTED)
    remote_spark.range(7).createOrReplaceTempView("seven")
    session.register_spark("s", "seven")
    assert session.sql("select count(*) as n from s").to_pylist() == [{"n": 7}]
    with pytest.raises(UserError, match="Spark has no table or view 'eight'"):
        session.register_spark("e", "eight")


def test_a_table_of_sparks_catalog_comes_through_spark(connect: Connect, remote_spark: SparkSession) -> None:
    session = connect(DISTRIBUTED)
    remote_spark.range(9).createOrReplaceTempView("nine")
    frame = session.sql("select count(*) as n from nine where id > 2")
    assert "this Spark session gives no access to query plans" in frame.explain_text()
    assert frame.to_pylist() == [{"n": 6}]


@pytest.mark.long
def test_rows_of_a_query_in_a_table_of_the_catalog(connect: Connect, remote_spark: SparkSession) -> None:
    session = connect(DISTRIBUTED)
    session.register_spark("r", remote_spark.range(0, 100, 1, 3))
    try:
        session.sql("select id % 3 as k, count(*) as n from r group by 1").write_spark_table("counted")
        assert sorted(map(tuple, remote_spark.table("counted").collect())) == [(0, 34), (1, 33), (2, 33)]
    finally:
        remote_spark.sql("drop table if exists counted")


def test_sizes_come_from_sparks_optimizer(remote_spark: SparkSession, connect: Connect) -> None:
    session = connect()
    tables = session._engine.on_spark("")
    assert isinstance(tables, ConnectTables)
    assert tables.adopt(remote_spark.range(1000)).bytes == pytest.approx(8000, rel=0.01)
    assert tables.adopt(remote_spark.range(1_000_000)).bytes == pytest.approx(8_000_000, rel=0.1)


def test_an_error_inside_of_a_dataframe_names_the_table(connect: Connect, remote_spark: SparkSession) -> None:
    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            raise ValueError("this row is not liked")
        yield from ()

    session = connect(DISTRIBUTED)
    session.register_spark("broken", remote_spark.range(3).mapInArrow(fail, "id long"))
    with pytest.raises(ExternalError, match=r"Spark could not compute table 'broken': .*this row is not liked"):
        session.sql("select sum(id) from broken").collect()


@pytest.mark.parametrize("what", [3, "a list"], ids=str)
def test_what_is_no_dataframe_of_the_session_is_refused(connect: Connect, what: object) -> None:
    with pytest.raises(UserError, match=r"cannot register a|Spark has no table"):
        connect().register_spark("x", what)


# ---- to_spark


def test_an_answer_is_a_dataframe_of_the_session(shared: Session, remote_spark: SparkSession) -> None:
    out = shared.sql("select id, txt, amount, at, day, xs, pairs, nested from events where id < 20").to_spark()
    assert out.sparkSession.session_id == remote_spark.session_id  # type: ignore[attr-defined]
    wanted = events(remote_spark).where("id < 20").drop("flag")
    assert out.schema.simpleString() == wanted.schema.simpleString()
    assert rows_of(out.toArrow()) == rows_of(wanted.toArrow())
    assert shared.sql("select id from events where id < 0").to_spark().count() == 0


def test_rows_do_not_pass_through_the_client(
    connect: Connect, remote_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark keeps them: in their order, without files of ours, and after our session is closed."""
    monkeypatch.setattr(ConnectTables, "from_rows", None)
    session = connect({**DISTRIBUTED, "sparkfusion.store": "shared", "sparkfusion.store_dir": str(tmp_path)})
    session.register_spark("events", events(remote_spark))
    out = session.sql("select flag, count(*) as n from events group by flag order by flag desc").to_spark()
    many = session.sql("select id, random() as r from events").to_spark()
    session.close()
    assert list(tmp_path.iterdir()) == []
    assert [tuple(row) for row in out.collect()] == [(2, 66), (1, 67), (0, 67)]
    assert sorted(row["id"] for row in many.select("id").collect()) == list(range(200))
    assert many.collect() == many.collect(), "it is not computed again"


def test_an_error_of_a_query_for_spark(connect: Connect, remote_spark: SparkSession, tmp_path: Path) -> None:
    session = connect({**DISTRIBUTED, "sparkfusion.store": "shared", "sparkfusion.store_dir": str(tmp_path)})
    session.register_spark("events", events(remote_spark))
    with pytest.raises(UserError, match="Divide by zero"):
        session.sql("select 1 / (id - id) as x from events").to_spark()
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_is_too_large_for_the_server(shared: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConnectTables, "_size_limit", lambda self: 100)
    with pytest.raises(UserError, match="Spark Connect takes at most 100 from its client") as caught:
        shared.sql("select id from events limit 50").to_spark()
    assert "write_parquet" in (caught.value.hint or "")


@pytest.mark.long
def test_tasks_write_files(shared: Session, tmp_path: Path) -> None:
    shared.sql("select id, flag from events").write_parquet(str(tmp_path / "out"))
    assert len(list((tmp_path / "out").iterdir())) > 1
    shared.register_parquet("written", tmp_path / "out")
    assert shared.sql("select count(*) as n from written").to_pylist() == [{"n": 200}]
    shared.deregister_table("written")


def test_a_classic_dataframe_is_none_of_this_session(connect: Connect) -> None:
    class Other:
        sparkSession = None  # noqa: N815

    with pytest.raises(SparkfusionError, match="cannot register a"):
        connect().register_spark("x", Other())
