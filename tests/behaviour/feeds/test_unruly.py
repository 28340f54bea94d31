"""Providers, callbacks and readers that misbehave: the query ends, its answer or error is right, nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pyarrow as pa
import pytest

from sparkfusion import FeedContext, ReaderContext, Session, UserError, WorkUnit
from tests.suites.feeds import ONE_STORE, SCHEMA, Scripted, counting_up, feed_numbers

pytestmark = ONE_STORE

HERE = pytest.mark.runners("local", reason="the provider's side is the same wherever tasks run")


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) as n from (select * from f limit 5)",
        "select count(*) as n from (select v from f where v >= 0 limit 5) x join (select 1 as one) on true",
        "select count(*) as n from (select v from f union all select v from g limit 5)",
    ],
)
@pytest.mark.parametrize("arguments", [{"tasks": 1}, {"tasks": 2}, {"bytes": 10}], ids=str)
@HERE
def test_a_limit_ends_an_endless_feed_of_any_size(session: Session, query: str, arguments: dict[str, Any]) -> None:
    for name in ("f", "g"):
        feed_numbers(session, name, Scripted(counting_up), **arguments)
    assert session.sql(query).to_pylist() == [{"n": 5}]


def with_callback(callback: Any) -> Scripted:
    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        context.on_stop(callback)
        yield from range(4)

    return Scripted(script)


@HERE
def test_a_callback_that_raises_disturbs_nobody(session: Session) -> None:
    provider = feed_numbers(session, "f", with_callback(lambda: 1 / 0))
    assert session.sql("select count(*) as n from f").to_pylist() == [{"n": 12}]
    assert provider.closed == 1


@HERE
def test_a_callback_or_a_close_that_blocks_holds_up_nothing(session: Session) -> None:
    released = threading.Event()

    class Blocking(Scripted):
        def close(self) -> None:
            released.wait(60)

    try:
        feed_numbers(session, "f", with_callback(lambda: released.wait(60)))
        feed_numbers(session, "g", Blocking(range(4)))
        for table in ("f", "g"):
            assert session.sql(f"select count(*) as n from {table}").to_pylist() == [{"n": 12}]
    finally:
        released.set()


async def in_turns(unit: WorkUnit, context: ReaderContext) -> AsyncIterator[pa.RecordBatch | None]:
    yield pa.record_batch({"v": pa.array([unit.payload], pa.int64())})
    yield None
    yield pa.record_batch({"v": pa.array([unit.payload], pa.int64())})


def test_a_part_that_is_nothing_is_not_the_end(session: Session) -> None:
    session.register_feed("f", Scripted(range(6)), schema=pa.schema([("v", pa.int64())]), reader=in_turns)
    assert session.sql("select count(*) as n from f").to_pylist() == [{"n": 12}]


def exiting(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
    raise SystemExit("goodbye")


def test_a_reader_that_exits_is_named(session: Session) -> None:
    session.register_feed("f", Scripted(range(2)), schema=SCHEMA, reader=exiting)
    with pytest.raises(UserError, match=r"reader of table 'f' failed on unit [01]: SystemExit: goodbye"):
        session.sql("select count(v) from f").collect()


def categories(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
    words = [f"{unit.payload}-{number % 5}" for number in range(9000)]
    return pa.record_batch({"c": pa.array(words).dictionary_encode()})


def test_many_rows_of_units_with_dictionaries_of_their_own(session: Session) -> None:
    schema = pa.schema([("c", pa.dictionary(pa.int32(), pa.string()))])
    session.register_feed("f", Scripted(range(4)), schema=schema, reader=categories, tasks=1)
    found = session.sql("select count(distinct c) as n, count(*) as rows from f").to_pylist()
    assert found == [{"n": 20, "rows": 36_000}]


@HERE
def test_create_table_as_select_says_that_it_cannot(session: Session) -> None:
    feed_numbers(session, "f", range(3))
    with pytest.raises(UserError, match="a single node cannot read a feed or a Spark DataFrame"):
        session.sql("create table t as select * from f")


@HERE
def test_units_of_a_limit_are_read_not_failed(session: Session) -> None:
    feed_numbers(session, "f", range(100), tasks=1)
    with session.sql("select count(*) from (select * from f limit 5)").stream() as rows:
        list(rows)
        (stats,) = rows.feeds()
    assert (stats.failed, stats.done) == (0, stats.handed)


@HERE
def test_options_of_the_session_hold_for_fed_scans(session: Session, tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    from sparkfusion import FileUnit

    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": list(range(1000)), "b": [n % 10 for n in range(1000)]}), path)
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    session.register_feed("f", Scripted([FileUnit(str(path))]), schema=schema, format="parquet")
    scanned = {}
    for pushed in ("false", "true"):
        session.config["datafusion.execution.parquet.pushdown_filters"] = pushed
        text = session.sql("select sum(a) from f where b = 3").explain_text(analyze=True)
        (line,) = [line for line in text.splitlines() if "FeedScan: f" in line]
        scanned[pushed] = line.rsplit("(", 1)[1].split(" rows")[0]
    assert scanned == {"false": "1,000", "true": "100"}


@HERE
def test_large_payloads_wait_their_turn(session: Session) -> None:
    """Not so many units are ahead of the tasks, but so many bytes."""
    payload = b"x" * (8 * 1024 * 1024)
    provider = Scripted([WorkUnit(payload)] * 20)
    schema = pa.schema([("n", pa.int64())])
    session.register_feed(
        "f", provider, schema=schema, reader=lambda unit, context: pa.table({"n": [len(unit.payload)]}), tasks=1
    )
    with session.sql("select n from f").stream() as rows:
        found = sum(batch.num_rows for batch in rows)
        (stats,) = rows.feeds()
    assert found == 20
    assert stats.most_waiting <= 10
