"""DataFrame: verbs build, actions run, and every way out gives the same rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from datafusion import col, lit
from datafusion import functions as f

from sparkfusion import DataFrame, Session, UserError
from tests.behaviour.parts import (
    DISTRIBUTED,
    TOTAL,
    assert_distributed_like_single_node,
    record,
    rows_of,
    single_node,
    write_parts,
)
from tests.conftest import Connect

pytestmark = pytest.mark.any_width


@pytest.fixture(scope="module")
def session(connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory) -> Session:
    session = connect_shared(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path_factory.mktemp("data")))
    return session


@pytest.fixture
def t(session: Session) -> DataFrame:
    return session.table("t")


VERBS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "aggregate": lambda t: t.aggregate([col("k")], [f.sum(col("v")).alias("s"), f.count(col("v")).alias("n")]),
    "aggregate by name": lambda t: t.aggregate("k", [f.max(col("v")).alias("m")]),
    "alias and join": lambda t: t.alias("a").join(t.select(col("v"), col("k").alias("k2")).alias("b"), on="v"),
    "cast": lambda t: t.filter(col("v") > lit(5)).cast({"v": pa.int32()}),
    "distinct": lambda t: t.select("k").distinct(),
    "drop": lambda t: t.filter(col("v") > lit(5)).drop("part"),
    "except_all": lambda t: t.select("v").except_all(t.filter(col("v") < lit(3990)).select("v")),
    "fill_null": lambda t: t.select(f.nullif(col("k"), lit(3)).alias("k"), col("v")).fill_null(9).distinct(),
    "filter": lambda t: t.filter(col("v") > lit(100), col("k") == lit(3)),
    "filter by text": lambda t: t.filter("v % 100 = 7"),
    "getitem": lambda t: t.filter(col("v") > lit(1))[["k", "v"]],
    "intersect": lambda t: t.select("v").intersect(t.filter(col("v") < lit(10)).select("v")),
    "join keys": lambda t: t.join(t.aggregate(col("k").alias("key"), [f.max(col("v"))]), left_on="k", right_on="key"),
    "join_on": lambda t: t.join_on(t.select((col("v") + lit(1)).alias("w")), col("v") == col("w")),
    "left join": lambda t: t.join(
        t.filter(col("v") < lit(9)).select(col("v").alias("w"), lit(1).alias("one")),
        left_on="v",
        right_on="w",
        how="left",
    ),
    "repartition_by_hash": lambda t: t.repartition_by_hash(col("k"), num=3).aggregate("k", [f.sum(col("v"))]),
    "select_exprs": lambda t: t.select_exprs("v * 2 as w", "k").distinct(),
    "select": lambda t: t.select((col("v") * lit(2)).alias("w"), "k").distinct(),
    "sort": lambda t: t.sort(col("v").sort(ascending=False)),
    "transform": lambda t: t.transform(lambda frame, k: frame.filter(col("k") == lit(k)), 2),
    "union": lambda t: t.filter(col("v") > lit(0)).union(t.filter(col("v") < lit(5))),
    "union distinct": lambda t: t.select("k").union(t.select("k"), distinct=True),
    "window": lambda t: t.select(col("k"), f.row_number(partition_by=[col("k")], order_by=[col("v")]).alias("n")),
    "with_column": lambda t: t.with_column("w", col("v") + lit(1)).distinct(),
    "with_columns": lambda t: t.with_columns((col("v") + lit(1)).alias("w"), x=col("k") * lit(2)).distinct(),
    "with_column_renamed": lambda t: t.with_column_renamed("v", "W w").distinct(),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_verbs_are_distributed_and_answer_like_a_single_node(
    t: DataFrame, verb: Callable[[DataFrame], DataFrame]
) -> None:
    assert_distributed_like_single_node(verb(t))


def test_order_is_kept(t: DataFrame) -> None:
    frame = t.sort(col("v").sort(ascending=False))
    assert frame.distribution().distributed
    assert frame.to_pydict()["v"] == list(range(TOTAL - 1, -1, -1))


def test_head_tail_and_limit(t: DataFrame) -> None:
    ordered = t.sort("v")
    assert ordered.head(3).to_pydict()["v"] == [0, 1, 2]
    assert ordered.tail(2).to_pydict()["v"] == [TOTAL - 2, TOTAL - 1]
    assert ordered.limit(2, offset=5).to_pydict()["v"] == [5, 6]


def test_every_way_out_gives_the_same_rows(session: Session) -> None:
    frame = session.sql("select k, sum(v) as s, cast(k as string) as name from t group by k order by k")
    wanted = single_node(frame)
    assert frame.collect() == wanted
    assert frame.to_arrow() == frame.to_arrow_table() == wanted
    assert frame.to_pylist() == wanted.to_pylist()
    assert frame.to_pydict() == wanted.to_pydict()
    assert pa.table(frame).to_pylist() == wanted.to_pylist()
    assert pa.Table.from_batches(list(frame.stream())) == wanted
    assert pa.Table.from_batches(list(frame)) == wanted
    assert frame.to_pandas().to_dict("list") == wanted.to_pydict()
    assert frame.to_polars().to_dict(as_series=False) == wanted.to_pydict()
    assert pl.DataFrame(frame).to_dict(as_series=False) == wanted.to_pydict()
    assert duckdb.sql("select k, s, name from frame order by k").fetchall() == rows_of(wanted)


@pytest.mark.parametrize("condition", ["v >= 0", "v < 0"])
def test_stream_has_the_promised_schema(session: Session, condition: str) -> None:
    frame = session.sql(f"select k, cast(v as string) as name, null as nothing from t where {condition}")
    assert frame.distribution().distributed
    with frame.stream() as rows:
        assert rows.schema == frame.schema()
        assert all(batch.schema == frame.schema() for batch in rows)
    assert frame.collect().schema == frame.schema()


def test_rows_without_columns_keep_their_number(session: Session) -> None:
    found = session.sql("select v from t where v > 99").select().collect()
    assert (found.num_rows, found.num_columns) == (TOTAL - 100, 0)


def test_count_runs_distributed(session: Session) -> None:
    events = record(session)
    assert session.sql("select v from t where v > 99").count() == TOTAL - 100
    assert any(type(event).__name__ == "TaskStarted" for event in events)


def test_cache_keeps_rows(session: Session, tmp_path: Path) -> None:
    home = write_parts(tmp_path)
    frame = session.read_parquet(home).aggregate("k", [f.sum(col("v")).alias("s")])
    cached = frame.cache()
    for file in home.iterdir():
        file.unlink()
    assert sum(cached.to_pydict()["s"]) == sum(range(TOTAL))


def test_show_and_html(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    frame = session.sql("select k, sum(v) as total from t group by k order by k")
    frame.show(2)
    shown = capsys.readouterr().out
    assert "total" in shown
    assert f"| {0} |" in shown
    assert "| 3 |" not in shown
    assert "<table" in frame._repr_html_()
    session.sql("select v from t where v < 0").show()
    assert "no rows" in capsys.readouterr().out


def test_repr_shows_the_first_rows(session: Session) -> None:
    events = record(session)
    shown = repr(session.sql("select v, count(*) as n from t group by v order by v"))
    assert "| 9 | 1 |" in shown
    assert "| 10 |" not in shown
    assert any(type(event).__name__ == "TaskStarted" for event in events)


def test_one_column_is_collected(session: Session) -> None:
    found = session.sql("select k, v from t order by v").collect_column("v")
    assert isinstance(found, pa.Int64Array)
    assert found.to_pylist() == list(range(TOTAL))


def test_tail_counts_with_tasks(t: DataFrame, session: Session) -> None:
    events = record(session)
    last = t.filter("v % 1 = 0").sort("v").tail(2)
    assert any(type(event).__name__ == "TaskStarted" for event in events)
    assert last.to_pydict()["v"] == [TOTAL - 2, TOTAL - 1]


@pytest.mark.runners("local", reason="nothing runs: it is about what is said")
@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_package_that_is_missing_is_named(session: Session, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    """Before the query runs for it."""
    events = record(session)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=f"to_{package} needs {package}, which is not installed") as caught:
        getattr(session.table("t"), f"to_{package}")()
    assert f"pip install {package}" in (caught.value.hint or "")
    assert not events


def test_transform_refuses_what_is_no_frame(t: DataFrame) -> None:
    with pytest.raises(TypeError, match="must return a DataFrame"):
        t.transform(lambda frame: 5)


def test_unknown_column_is_named(t: DataFrame) -> None:
    with pytest.raises(UserError, match="nope"):
        t.select("nope")


def test_frames_of_different_sessions_join(connect: Connect, t: DataFrame, tmp_path: Path) -> None:
    other = connect(DISTRIBUTED)
    other.register_parquet("u", write_parts(tmp_path))
    joined = t.join(other.table("u").select(col("v").alias("w")), left_on="v", right_on="w")
    assert_distributed_like_single_node(joined)
