"""Items as a feed: lists, functions, iterators, asynchronous ones, and files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion import FileUnit, ReaderContext, Session, UserError, WorkUnit
from sparkfusion.feeds import Items

SCHEMA = pa.schema([("v", pa.int64())])


@pytest.fixture
def session() -> Iterator[Session]:
    with sparkfusion.connect() as opened:
        yield opened


def ten_times(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
    return pa.record_batch({"v": [unit.payload * 10]}, schema=SCHEMA)


def values(session: Session, table: str = "t") -> list[Any]:
    return [row["v"] for row in session.sql(f"select v from {table} order by v").to_pylist()]


async def some_later() -> AsyncIterator[int]:
    for number in (3, 4):
        yield number


@pytest.mark.parametrize(
    ("items", "found"),
    [
        ([1, WorkUnit(2, weight=5.0)], [10, 20]),
        (range(3), [0, 10, 20]),
        (lambda: iter([1, 2]), [10, 20]),
        (lambda: [], []),
        (some_later, [30, 40]),
    ],
)
def test_what_can_be_read_again(session: Session, items: Any, found: list[int]) -> None:
    session.register_feed("t", Items(items, ten_times, schema=SCHEMA))
    assert values(session) == found
    assert values(session) == found
    assert session.sql("select count(*) as c from t a join t b on a.v = b.v").to_pylist() == [{"c": len(found)}]


@pytest.mark.parametrize("make", [lambda: iter([1, 2]), lambda: (number for number in (1, 2))])
def test_an_iterator_is_read_by_one_query(session: Session, make: Any) -> None:
    session.register_feed("t", Items(make(), ten_times, schema=SCHEMA))
    assert values(session) == [10, 20]
    with pytest.raises(UserError, match=r"feed of table 't' failed: .*an iterator, which can be read only once"):
        values(session)


def test_a_query_that_reads_an_iterator_twice_fails(session: Session) -> None:
    session.register_feed("t", Items(iter([1, 2]), ten_times, schema=SCHEMA))
    with pytest.raises(UserError, match="an iterator, which can be read only once"):
        session.sql("select a.v from t a join t b on a.v = b.v").collect()


def test_reader_and_schema_may_be_said_at_registration(session: Session) -> None:
    session.register_feed("t", Items([7]), reader=ten_times, schema=SCHEMA)
    assert values(session) == [70]


def test_items_that_are_files(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        pq.write_table(pa.table({"v": [number]}), tmp_path / f"{number}.parquet")
    monkeypatch.chdir(tmp_path)
    items = ["0.parquet", tmp_path / "1.parquet"]
    session.register_feed("t", Items(items, format="parquet", schema=SCHEMA))
    assert values(session) == [0, 1]
    unit = FileUnit(str(tmp_path / "1.parquet"), partition_values={"p": "x"})
    made = Items([unit], format="parquet", schema=SCHEMA, partition_columns=[("p", pa.string())])
    session.register_feed("u", made)
    assert session.sql("select v, p from u").to_pylist() == [{"v": 1, "p": "x"}]


@pytest.mark.parametrize("items", ["abc", b"abc", {"a": 1}, 5, None])
def test_what_is_no_iterable_is_refused(items: Any) -> None:
    with pytest.raises(UserError, match=f"not a {type(items).__name__}"):
        Items(items, ten_times)


def test_a_function_that_returns_no_iterable_fails_the_query(session: Session) -> None:
    session.register_feed("t", Items(lambda: "abc", ten_times, schema=SCHEMA))
    with pytest.raises(UserError, match="returned a str, not an iterable"):
        values(session)
