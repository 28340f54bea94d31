"""A provider that fails fails its query, at once and by name; nothing is taken for the end of its units."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from sparkfusion import FeedContext, FeedError, FileUnit, Session, SparkfusionError, WorkUnit
from sparkfusion.observe.events import QueryFailed, TaskFailed
from tests.behaviour.parts import assert_usable, record
from tests.suites.feeds import (
    ALL_RUN_LOCALLY,
    MANY,
    NOT_LOCAL,
    ONE_STORE,
    SCHEMA,
    AsyncScripted,
    Door,
    Scripted,
    counting_up,
    feed_numbers,
    read_number,
)

pytestmark = [pytest.mark.sample("local", "flight"), ONE_STORE]

QUERIES = {
    "streamed": "select v from f",
    "grouped": "select k, sum(v) from f group by k",
    "sorted": "select v from f order by v",
    "joined": "select f.v from f join g on f.v = g.v",
    "in a union": "select v from g union all select v from f",
    "broadcast": "select count(*) from f, g",
}


@pytest.mark.runners("local", reason=MANY)
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("units", [0, 3])
def test_an_error_fails_the_query_with_its_message(session: Session, query: str, units: int) -> None:
    check_error(session, query, units)


@pytest.mark.runners(*NOT_LOCAL, reason=ALL_RUN_LOCALLY)
@pytest.mark.parametrize(("name", "units"), [("streamed", 0), ("grouped", 3), ("broadcast", 3)])
def test_an_error_fails_the_query_on_every_runner(session: Session, name: str, units: int) -> None:
    check_error(session, QUERIES[name], units)


def check_error(session: Session, query: str, units: int) -> None:
    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        yield from range(units)
        raise PermissionError("the bucket is locked")

    provider = feed_numbers(session, "f", Scripted(script), tasks=2)
    other = feed_numbers(session, "g", range(4), tasks=2)
    events = record(session)
    with pytest.raises(FeedError, match=r"the feed of table 'f' failed: PermissionError: the bucket is locked"):
        session.sql(query).collect()
    assert (provider.calls, provider.closed) == ([None], 1), "it is not tried again"
    assert other.closed == (1 if re.search(r"\bg\b", query) else 0)
    assert [event.cancelled for event in events if isinstance(event, QueryFailed)] == [False]
    assert not [event for event in events if isinstance(event, TaskFailed) and event.retried]
    assert_usable(session)


@pytest.mark.parametrize("query", ["select v from f union all select v from g", "select count(*) from f, g"])
def test_an_error_in_one_feed_does_not_wait_for_the_other(session: Session, query: str) -> None:
    """The other feed never ends: the error must not wait for it."""

    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        yield 1
        raise OSError("page 2 is gone")

    with Door() as door:

        def waiting(partition: int | None, context: FeedContext) -> Iterator[int]:
            yield 1
            context.on_stop(door.open)
            door.wait()

        broken = feed_numbers(session, "f", Scripted(script), tasks=1)
        other = feed_numbers(session, "g", Scripted(waiting), tasks=1)
        with pytest.raises(FeedError, match=r"'f' failed: OSError: page 2 is gone"):
            session.sql(query).collect()
    assert (broken.closed, other.closed) == (1, 1)


def test_an_error_stops_a_feed_that_never_ends(session: Session) -> None:
    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        yield 1
        raise OSError("page 2 is gone")

    broken = feed_numbers(session, "f", Scripted(script), tasks=1)
    endless = feed_numbers(session, "g", Scripted(counting_up), tasks=1)
    with pytest.raises(FeedError, match="page 2 is gone"):
        session.sql("select f.v from f join g on f.v = g.v").collect()
    assert (broken.closed, endless.closed, endless.ended) == (1, 1, 1)


def test_an_error_in_one_partition(session: Session) -> None:
    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        yield 1
        if partition == 2:
            raise OSError("partition two is gone")

    provider = feed_numbers(session, "f", Scripted(script, partitions=4), tasks=2)
    with pytest.raises(FeedError, match="'f' failed: OSError: partition two is gone"):
        session.sql("select sum(v) from f").collect()
    assert provider.closed == 1


def test_an_error_when_feed_is_called(session: Session) -> None:
    class Refusing(Scripted):
        def feed(self, partition: int | None, context: FeedContext) -> Iterator[WorkUnit]:
            raise RuntimeError("no credentials")

    provider = feed_numbers(session, "f", Refusing(()), tasks=2)
    with pytest.raises(FeedError, match="'f' failed: RuntimeError: no credentials"):
        session.sql("select v from f").collect()
    assert provider.closed == 1


def test_an_error_of_an_asynchronous_provider(session: Session) -> None:
    async def script(partition: int | None, context: FeedContext) -> AsyncIterator[int]:
        yield 1
        await asyncio.sleep(0)
        raise TimeoutError("the service does not answer")

    provider = feed_numbers(session, "f", AsyncScripted(script), tasks=2)
    with pytest.raises(FeedError, match="'f' failed: TimeoutError: the service does not answer"):
        session.sql("select v from f").collect()
    assert (provider.ended, provider.closed) == (1, 1)


async def _cancelled(partition: int | None, context: FeedContext) -> AsyncIterator[int]:
    """Something that the provider waits for is cancelled, by somebody else."""
    yield 1
    waiting = asyncio.get_running_loop().create_future()
    waiting.cancel()
    await waiting


def _exit(partition: int | None, context: FeedContext) -> Iterator[int]:
    yield 1
    raise SystemExit(3)


def _cancelled_sync(partition: int | None, context: FeedContext) -> Iterator[int]:
    yield 1
    raise asyncio.CancelledError


ODD_ENDS: dict[str, Callable[[], Scripted]] = {
    "cancelled inside": lambda: AsyncScripted(_cancelled),
    "exit": lambda: Scripted(_exit),
    "cancelled error": lambda: Scripted(_cancelled_sync),
}


@pytest.mark.parametrize("odd", ODD_ENDS)
def test_an_odd_end_is_not_taken_for_the_end_of_the_units(session: Session, odd: str) -> None:
    """Rows that are missing without an error would be a wrong answer."""
    provider = feed_numbers(session, "f", ODD_ENDS[odd](), tasks=2)
    with pytest.raises(FeedError, match="'f' failed"):
        session.sql("select count(*) from f").collect()
    assert provider.closed == 1


NO_UNITS: dict[str, Any] = {"nothing": None, "a text": "abc", "numbers": [1, 2], "one unit": WorkUnit(1)}


@pytest.mark.runners("local", reason="the provider is in this process on every runner")
@pytest.mark.parametrize("given", NO_UNITS)
def test_what_is_no_iterable_of_units_is_refused(session: Session, given: str) -> None:
    class Odd(Scripted):
        def feed(self, partition: int | None, context: FeedContext) -> Any:
            return NO_UNITS[given]

    feed_numbers(session, "f", Odd(()), tasks=2)
    with pytest.raises(FeedError, match="the feed of table 'f' failed"):
        session.sql("select count(*) from f").collect()


@pytest.mark.runners("local", reason="the provider is in this process on every runner")
@pytest.mark.parametrize("format", ["list", "iterator", "async iterable", "coroutine"])
def test_any_iterable_of_units_will_do(session: Session, format: str) -> None:
    class AsyncPages:
        def __aiter__(self) -> AsyncIterator[WorkUnit]:
            return self._pages()

        async def _pages(self) -> AsyncIterator[WorkUnit]:
            for number in range(3):
                yield WorkUnit(number)

    async def units() -> list[WorkUnit]:
        return [WorkUnit(number) for number in range(3)]

    class Odd:
        """No subclass, and no `close`."""

        def feed(self, partition: int | None, context: FeedContext) -> Any:
            made = [WorkUnit(number) for number in range(3)]
            return {"list": made, "iterator": iter(made), "async iterable": AsyncPages()}.get(format) or units()

    session.register_feed("f", Odd(), schema=SCHEMA, reader=read_number)  # type: ignore[arg-type]
    assert session.sql("select count(*) as n from f").to_pylist() == [{"n": 9}]


def test_units_that_are_no_files_are_refused_in_a_feed_of_files(session: Session) -> None:
    session.register_feed("f", Scripted([WorkUnit(1)]), schema=SCHEMA, format="parquet")
    with pytest.raises(FeedError, match="'f' failed: it yielded a WorkUnit, not a FileUnit"):
        session.sql("select v from f").collect()


def test_a_payload_that_cannot_travel_is_refused(session: Session) -> None:
    feed_numbers(session, "f", Scripted([WorkUnit(lambda: 1)]))
    with pytest.raises(FeedError, match=r"'f' failed: .*cannot be pickled"):
        session.sql("select v from f").collect()


@dataclass(frozen=True)
class Page(WorkUnit):
    """A user's own kind of unit."""

    number: int = 0


def test_what_a_unit_of_the_users_own_class_says_is_not_lost(session: Session) -> None:
    """Its own attributes reach the reader, or it is refused: they must not vanish on the way."""

    def read(unit: WorkUnit, context: object) -> pa.RecordBatch:
        return pa.record_batch({"number": pa.array([getattr(unit, "number", -1)], pa.int64())})

    session.register_feed("f", Scripted([Page(number=7)]), schema=pa.schema([("number", pa.int64())]), reader=read)
    try:
        found = session.sql("select number from f").to_pylist()
    except SparkfusionError as error:
        assert "Page" in str(error)  # noqa: PT017
    else:
        assert found == [{"number": 7}]


PAYLOADS: dict[str, Any] = {
    "bytes": b"\x00\xff",
    "text": "ünï\x00 'quoted'",
    "nothing": None,
    "number": 2**70,
    "float": -0.5,
    "not a number": float("inf"),
    "list": [1, [None, "x"]],
    "dict": {"a": {"b": [1.5]}},
    "keys that are no texts": {1: "x"},
    "tuple": (1, 2),
    "set": frozenset({3}),
    "object": FileUnit("inner", 5),
}


def test_payloads_arrive_as_they_were(session: Session) -> None:
    def read(unit: WorkUnit, context: object) -> pa.RecordBatch:
        return pa.record_batch({"shown": [f"{type(unit.payload).__name__} {unit.payload!r}"]})

    units = Scripted([WorkUnit(payload) for payload in PAYLOADS.values()])
    session.register_feed("f", units, schema=pa.schema([("shown", pa.string())]), reader=read, tasks=2)
    found = session.sql("select shown from f").collect().column("shown").to_pylist()
    assert sorted(found) == sorted(f"{type(p).__name__} {p!r}" for p in PAYLOADS.values())
