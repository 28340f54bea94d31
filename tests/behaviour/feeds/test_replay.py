"""A task that is tried again reads the same units again: every unit's rows appear once."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkfusion import ExternalError, ReaderContext, Session, SparkfusionError, UserError, WorkUnit
from sparkfusion.observe.events import TaskFailed
from tests.behaviour.parts import record
from tests.runners import LOCAL, Runner
from tests.suites.feeds import ALL_RUN_LOCALLY, MANY, NOT_LOCAL, SCHEMA, Scripted, batch_of, feed_numbers

pytestmark = pytest.mark.sample("local", "flight", "spark-local")  # Spark tries tasks again by itself

UNITS = 40
COUNTED = "select unit, count(*) as n, sum(v) as x from f group by unit"
EACH_ONCE = [(unit, 3, 3000 * unit + 3) for unit in range(UNITS)]


def failing_on(marks: Path, units: dict[int, int], error: Callable[[], Exception]) -> Callable[[WorkUnit, Any], Any]:
    """A reader that fails on these units, so often; marks in a directory count, wherever it runs."""
    directory = str(marks)

    def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
        for attempt in range(units.get(unit.payload, 0)):
            try:
                os.close(os.open(f"{directory}/{unit.payload}-{attempt}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            raise error()
        return batch_of(unit.payload)

    return read


def counted(session: Session, query: str = COUNTED) -> list[tuple[int, int, int]]:
    return sorted((row["unit"], row["n"], row["x"]) for row in session.sql(query).to_pylist())


@pytest.mark.parametrize(("tasks", "ahead"), [pytest.param(1, 1000, marks=pytest.mark.long), (3, 2)])
def test_after_a_failure_every_unit_is_there_once(session: Session, tmp_path: Path, tasks: int, ahead: int) -> None:
    """The reader fails once, after half of its units: on a small queue in the middle of many grants."""
    session.config["sparkfusion.feed_units_ahead"] = ahead
    reader = failing_on(tmp_path, {UNITS // 2: 1}, lambda: ConnectionError("reset by peer"))
    provider = feed_numbers(session, "f", range(UNITS), tasks=tasks, reader=reader)
    assert counted(session) == EACH_ONCE
    assert list(tmp_path.iterdir()), "the reader did not fail"
    assert (provider.calls, provider.asked, provider.closed) == ([None], UNITS, 1), "the provider is not asked again"


@pytest.mark.sample("local", "flight")
def test_after_failures_in_several_tasks(session: Session, tmp_path: Path) -> None:
    session.config["sparkfusion.feed_units_ahead"] = 4
    failing = {5: 1, 17: 1, 18: 1, 39: 1}
    reader = failing_on(tmp_path, failing, lambda: ConnectionError("reset by peer"))
    feed_numbers(session, "f", range(UNITS), tasks=3, reader=reader)
    assert counted(session) == EACH_ONCE
    assert len(list(tmp_path.iterdir())) == len(failing)


def test_after_a_failure_in_a_partition_its_order_is_the_same(session: Session, tmp_path: Path) -> None:
    """An ordered aggregate over the order of arrival shows that the second attempt read its units as the first did."""

    def script(partition: int | None, context: object) -> list[int]:
        assert partition is not None
        return list(range(partition * 10, partition * 10 + 10))

    reader = failing_on(tmp_path, {15: 1}, lambda: ConnectionError("reset by peer"))
    provider = feed_numbers(session, "f", Scripted(script, partitions=4), tasks=2, reader=reader)
    assert counted(session) == EACH_ONCE
    assert sorted(provider.calls, key=str) == [0, 1, 2, 3]


SHAPES = {
    "sorted": "select unit, count(*) as n, sum(v) as x from (select * from f order by v limit 200) y group by unit",
    "joined": "select f.unit, count(*) as n, sum(f.v) as x from f join g on f.v = g.v group by f.unit",
    "broadcast": "select f.unit, count(*) as n, sum(f.v) as x from (select 1 as o) o, f group by f.unit",
    "union": "select unit, count(*) as n, sum(v) as x from (select * from f union all select * from e) u group by unit",
}


@pytest.mark.parametrize("query", SHAPES.values(), ids=SHAPES)
@pytest.mark.runners("local", "flight", "spark-spark", reason="tasks of every shape get units in the same way")
@pytest.mark.sample("local", "flight")
def test_after_a_failure_in_other_shapes(session: Session, tmp_path: Path, query: str) -> None:
    session.config["sparkfusion.feed_units_ahead"] = 4
    reader = failing_on(tmp_path, {20: 1, 31: 1}, lambda: ConnectionError("reset by peer"))
    feed_numbers(session, "f", range(UNITS), tasks=2, reader=reader)
    feed_numbers(session, "g", range(UNITS), tasks=2)
    feed_numbers(session, "e", [], tasks=2)
    assert counted(session, query) == EACH_ONCE
    assert len(list(tmp_path.iterdir())) == 2


def test_rows_that_the_reader_already_has_are_not_given_twice(session: Session, tmp_path: Path) -> None:
    """Streamed rows cannot be taken back: another attempt goes on behind them."""
    session.config["sparkfusion.feed_units_ahead"] = 2
    reader = failing_on(tmp_path, {20: 1}, lambda: ConnectionError("reset by peer"))
    feed_numbers(session, "f", range(UNITS), tasks=2, reader=reader)
    seen: list[int] = []
    with session.sql("select unit from f").stream() as rows:
        for batch in rows:
            seen += batch.column("unit").to_pylist()
    assert sorted(seen) == sorted([*range(UNITS)] * 3)
    assert list(tmp_path.iterdir()), "an attempt failed"


@pytest.mark.parametrize("retries", [pytest.param(0, marks=pytest.mark.long), 2])
def test_retries_are_counted(session: Session, tmp_path: Path, runner: Runner, retries: int) -> None:
    session.config["sparkfusion.task_retries"] = retries
    reader = failing_on(tmp_path, {3: 100}, lambda: ConnectionError("reset by peer"))
    provider = feed_numbers(session, "f", range(8), tasks=1, reader=reader)
    events = record(session)
    with pytest.raises(ExternalError, match=r"reader of table 'f' failed on unit 3: ConnectionError: reset by peer"):
        session.sql(COUNTED).collect()
    if runner.name == LOCAL:  # Spark counts attempts by a setting of its own
        assert len(list(tmp_path.iterdir())) == retries + 1
        failed = [event.retried for event in events if isinstance(event, TaskFailed)]
        assert failed == [True] * retries + [False]
    assert (provider.calls, provider.closed) == ([None], 1)


FINAL: dict[str, Callable[[], Exception]] = {
    "ValueError": lambda: ValueError("a broken page"),
    "UserError": lambda: UserError("a broken page"),
    "KeyError": lambda: KeyError("a broken page"),
}


@pytest.mark.parametrize("kind", FINAL)
def test_a_readers_own_error_is_not_tried_again(session: Session, tmp_path: Path, kind: str) -> None:
    reader = failing_on(tmp_path, {3: 100}, FINAL[kind])
    provider = feed_numbers(session, "f", range(8), tasks=2, reader=reader)
    with pytest.raises(UserError, match=r"the reader of table 'f' failed on unit 3: .*a broken page"):
        session.sql(COUNTED).collect()
    assert len(list(tmp_path.iterdir())) == 1
    assert provider.closed == 1


def test_an_error_shows_a_long_unit_shortened(session: Session) -> None:
    def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
        raise ValueError("no")

    feed_numbers(session, "f", Scripted([WorkUnit("x" * 5000)]), reader=read)
    with pytest.raises(UserError, match=r"failed on unit 'xxx") as raised:
        session.sql("select v from f").collect()
    assert len(raised.value.message) < 500


# ---- what readers may give


def _batches(unit: WorkUnit, context: ReaderContext) -> Iterator[Any]:
    batch = batch_of(unit.payload)
    yield batch.slice(0, 1)
    yield pa.Table.from_batches([batch.slice(1)])
    yield [batch.slice(0, 0), None]


async def _async_batches(unit: WorkUnit, context: ReaderContext) -> AsyncIterator[pa.RecordBatch]:
    batch = batch_of(unit.payload)
    for row in range(3):
        yield batch.slice(row, 1)


async def _coroutine(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
    return batch_of(unit.payload)


class _AsyncPages:
    """An asynchronous iterable that is no generator."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        return _async_batches(WorkUnit(self._number), None)  # type: ignore[arg-type]


READERS: dict[str, Callable[[WorkUnit, ReaderContext], Any]] = {
    "table": lambda unit, context: pa.Table.from_batches([batch_of(unit.payload)]),
    "reader": lambda unit, context: pa.RecordBatchReader.from_batches(SCHEMA, [batch_of(unit.payload)]),
    "frame of pandas": lambda unit, context: batch_of(unit.payload).to_pandas(),
    "generator": _batches,
    "asynchronous generator": _async_batches,
    "asynchronous iterable": lambda unit, context: _AsyncPages(unit.payload),
    "coroutine": _coroutine,
    "other order, other types": lambda unit, context: (
        pa.Table.from_batches([batch_of(unit.payload)])
        .select(["s", "v", "k", "unit"])
        .cast(pa.schema([("s", pa.large_string()), ("v", pa.int32()), ("k", pa.int8()), ("unit", pa.float64())]))
    ),
    "more columns": lambda unit, context: pa.Table.from_batches([batch_of(unit.payload)]).append_column(
        "more", pa.array([1, 2, 3])
    ),
}


@pytest.mark.runners(*NOT_LOCAL, reason=ALL_RUN_LOCALLY)
def test_what_a_reader_may_give_on_every_runner(session: Session) -> None:
    feed_numbers(session, "f", range(UNITS), tasks=2, reader=READERS["asynchronous generator"])
    assert counted(session) == EACH_ONCE


@pytest.mark.runners("local", reason=MANY)
@pytest.mark.parametrize("kind", READERS)
def test_what_a_reader_may_give(session: Session, kind: str) -> None:
    feed_numbers(session, "f", range(UNITS), tasks=2, reader=READERS[kind])
    assert counted(session) == EACH_ONCE


WRONG_ROWS: dict[str, tuple[Callable[[WorkUnit, ReaderContext], Any], str]] = {
    "a text": (lambda unit, context: "rows", "it returned a str, not record batches"),
    "a dict": (lambda unit, context: {"v": [1]}, "it returned a dict, not record batches"),
    "a number in a list": (lambda unit, context: [1], "it returned a int, not record batches"),
    "no column": (lambda unit, context: batch_of(1).select(["unit", "k"]), "no column 'v', which the query uses"),
    "another type": (
        lambda unit, context: pa.table({"unit": [1], "v": ["x"]}),
        "column 'v' is string, not int64",
    ),
    "a lossy type": (lambda unit, context: pa.table({"unit": [1], "v": [1.5]}), "column 'v' is double, not int64"),
    "a type that cannot be cast": (
        lambda unit, context: pa.table({"unit": [1], "v": [[1]]}),
        "column 'v' is list",
    ),
}


@pytest.mark.runners("local", reason="a task checks the rows of its reader the same way on every runner")
@pytest.mark.parametrize("kind", WRONG_ROWS)
def test_rows_that_do_not_fit_are_refused(session: Session, kind: str) -> None:
    reader, message = WRONG_ROWS[kind]
    feed_numbers(session, "f", [1], reader=reader)
    with pytest.raises(SparkfusionError, match=rf"the reader of table 'f' failed on unit 1: .*{message}"):
        session.sql("select unit, v from f").collect()


def test_columns_that_the_query_does_not_need_may_be_left_out(session: Session) -> None:
    feed_numbers(session, "f", range(3), reader=lambda unit, context: batch_of(unit.payload).select(context.projection))
    assert session.sql("select sum(v) as x from f where k >= 0").to_pylist() == [{"x": 3 * 3000 + 9}]
    assert session.sql("select s from f").collect().num_rows == 9
    assert session.sql("select count(s) as n from f").to_pylist() == [{"n": 6}]


def test_categories_may_differ_from_unit_to_unit(session: Session) -> None:
    """Dictionaries of Arrow: each unit's rows come with their own."""

    def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
        values = pa.array([f"c{unit.payload}", f"c{unit.payload + 1}"]).dictionary_encode()
        return pa.record_batch({"c": values})

    schema = pa.schema([("c", pa.dictionary(pa.int32(), pa.string()))])
    feed_numbers(session, "f", range(6), tasks=1, reader=read, schema=schema)
    found = session.sql("select cast(c as varchar) as c, count(*) as n from f group by c order by c").to_pylist()
    assert found == [{"c": f"c{i}", "n": 1 if i in (0, 6) else 2} for i in range(7)]


def test_a_unit_may_have_many_rows(session: Session) -> None:
    """More than fits into what a task reads at once."""
    rows = 600_000

    def read(unit: WorkUnit, context: ReaderContext) -> Iterator[pa.RecordBatch]:
        for start in range(0, 10 * rows, rows):
            yield pa.record_batch({"v": pa.array(np.arange(start, start + rows))})

    feed_numbers(session, "f", [0], tasks=1, reader=read, schema=pa.schema([("v", pa.int64())]))
    found = session.sql("select count(*) as n, sum(v) as x, max(v) as m from f").to_pylist()
    last = 10 * rows - 1
    assert found == [{"n": last + 1, "x": last * (last + 1) // 2, "m": last}]


def test_headers_reach_provider_and_reader(session: Session) -> None:
    def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
        return pa.record_batch({"shown": [f"{context.table} {context.headers['token']} {context.schema.names}"]})

    provider = Scripted([1])
    session.register_feed(
        "f", provider, schema=pa.schema([("shown", pa.string())]), reader=read, headers={"token": "x"}
    )
    assert session.sql("select shown from f").to_pylist() == [{"shown": "f x ['shown']"}]
    assert provider.contexts[0].headers == {"token": "x"}


@pytest.mark.runners("local", reason="nothing runs")
def test_a_feed_cannot_be_written(session: Session) -> None:
    feed_numbers(session, "f", [1])
    with pytest.raises(UserError, match="the table f is a feed, which cannot be written"):
        session.sql("insert into f select * from f")
