"""A provider is asked for no more than is taken, and stops when the query has what it needs."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from sparkfusion import FeedContext, QueryCancelledError, ReaderContext, Session, UserError, WorkUnit
from tests.behaviour.parts import assert_usable
from tests.behaviour.probes import PATIENCE, PROMPT, Counter, Gate, until
from tests.suites.feeds import (
    ALL_RUN_LOCALLY,
    MANY,
    NOT_LOCAL,
    ONE_STORE,
    AsyncScripted,
    Door,
    Scripted,
    batch_of,
    counting_up,
    feed_numbers,
    settled,
)

pytestmark = ONE_STORE

AHEAD = 4


# ---- back-pressure


@pytest.mark.runners("local", "flight", reason="on Spark a stage is one job: what its tasks make waits in the store")
def test_a_stopped_reader_stops_the_provider(session: Session) -> None:
    session.config["sparkfusion.feed_units_ahead"] = AHEAD
    session.config["sparkfusion.channel_frames"] = 1
    provider = feed_numbers(session, "f", Scripted(counting_up), tasks=2)
    with session.sql("select unit from f").stream() as rows:
        next(rows)
        until(lambda: rows.feeds()[0].waiting == AHEAD, "the provider had to wait")
        asked = settled(lambda: provider.asked)
        # A frame with the reader, one in the channel, one with each task: each of a grant of half of those ahead.
        assert asked <= 4 * (AHEAD // 2) + AHEAD + 1
        next(rows)
        next(rows)
        until(lambda: provider.asked > asked, "reading on makes it go on")
        assert settled(lambda: provider.asked) <= 6 * (AHEAD // 2) + AHEAD + 1
    assert (provider.ended, provider.closed) == (1, 1)


@pytest.mark.parametrize(("ahead", "partitions"), [(1, None), (7, None), (7, 4)])
def test_tasks_that_are_busy_stop_the_provider(
    session: Session, tmp_path: Path, ahead: int, partitions: int | None
) -> None:
    """Every task holds units that it cannot finish: beyond those, only so many are asked for."""
    session.config["sparkfusion.feed_units_ahead"] = ahead
    provider = Scripted(counting_up, partitions)
    with Gate(tmp_path) as gate:
        hold = gate.hold()

        def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
            hold()
            return batch_of(unit.payload)

        feed_numbers(session, "f", provider, tasks=2, reader=read)
        with session.sql("select sum(v) from f").stream() as rows:
            gate.wait_for_arrivals(2)
            asked = settled(lambda: provider.asked)
            (stats,) = rows.feeds()
            rows.cancel()
            gate.open()
            with pytest.raises(QueryCancelledError):
                next(rows)
    each = max(1, ahead // 2)
    queues = 1 if partitions is None else 2
    assert asked <= 2 * max(1, ahead) + queues * (ahead if partitions is None else each) + queues
    assert stats.found - stats.handed == stats.waiting <= ahead + 1
    assert stats.most_waiting <= ahead
    assert provider.closed == 1


# ---- LIMIT, and providers that never end

ENOUGH = {
    "limit": ("select v from f limit 5", 5),
    "limit and offset": ("select v from f limit 5 offset 10", 5),
    "filtered limit": ("select v from f where v % 1000 = 1 limit 5", 5),
    "limit of a union": ("select v from f union all select v from f limit 5", 5),
    "limit in a subquery": ("select count(*) as n from (select v from f limit 5) x", 1),
    "limit with a table": ("select t.k, f.v from t join f on t.k = f.k limit 3", 3),
    "limit zero": ("select v from f limit 0", 0),
}


@pytest.mark.runners("local", reason=MANY)
@pytest.mark.parametrize(("query", "rows"), ENOUGH.values(), ids=ENOUGH)
def test_an_endless_provider_stops_when_the_query_has_enough(session: Session, query: str, rows: int) -> None:
    check_endless(session, query, rows)


@pytest.mark.runners(*NOT_LOCAL, reason=ALL_RUN_LOCALLY)
@pytest.mark.parametrize("name", ["limit", "limit of a union", "limit in a subquery"])
@pytest.mark.sample("local", "flight", "spark-local")
def test_an_endless_provider_stops_on_every_runner(session: Session, name: str) -> None:
    check_endless(session, *ENOUGH[name])


def check_endless(session: Session, query: str, rows: int) -> None:
    session.config["sparkfusion.feed_units_ahead"] = AHEAD
    provider = feed_numbers(session, "f", Scripted(counting_up), tasks=2)
    session.register_record_batches("t", [[pa.record_batch({"k": pa.array([1, 2], pa.int64())})]])
    assert session.sql(query).collect().num_rows == rows
    assert provider.asked < 500, "it was asked for much more than was needed"
    assert provider.closed == (1 if provider.calls or rows else 0)
    assert provider.ended == len(provider.calls)


def test_a_limit_stops_a_long_listing_early(session: Session) -> None:
    session.config["sparkfusion.feed_units_ahead"] = AHEAD
    provider = feed_numbers(session, "f", range(10_000), tasks=2)
    assert session.sql("select v from f limit 7").collect().num_rows == 7
    assert provider.asked < 200
    assert (provider.ended, provider.closed) == (1, 1)


BLOCKED = {
    "limit": "select v from f limit 4",
    "limit below a join": "select count(*) as n from (select v from f limit 4) x cross join t",
}


@pytest.mark.parametrize("query", BLOCKED.values(), ids=BLOCKED)
def test_a_limit_does_not_wait_for_a_provider_that_has_given_enough(session: Session, query: str) -> None:
    """The first unit has the rows; the provider then blocks, and no task may wait for what is not needed."""
    session.register_record_batches("t", [[pa.record_batch({"k": pa.array([1], pa.int64())})]])
    with Door() as door:

        def script(partition: int | None, context: FeedContext) -> Iterator[int]:
            yield from range(4)
            door.wait()

        provider = feed_numbers(session, "f", Scripted(script), tasks=3)
        running = session.sql(query).stream()
        watch = threading.Timer(PROMPT / 2, running.cancel)
        watch.start()
        try:
            with running:
                found = [row for batch in running for row in batch.to_pylist()]
        finally:
            watch.cancel()
            watch.join()
    assert len(found) == 4 or found == [{"n": 4}]
    assert provider.closed == 1


# ---- closed exactly once


def test_closed_once_after_all_units(session: Session) -> None:
    provider = feed_numbers(session, "f", range(3), tasks=2)
    session.sql("select v from f").collect()
    session.sql("select v from f").collect()
    assert (provider.ended, provider.closed) == (2, 2), "once for each query"


def test_closed_once_when_it_failed(session: Session) -> None:
    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        yield 1
        raise ValueError("no more pages")

    provider = feed_numbers(session, "f", Scripted(script), tasks=2)
    with pytest.raises(UserError, match="no more pages"):
        session.sql("select v from f").collect()
    assert (provider.ended, provider.closed) == (1, 1)


def test_closed_once_when_a_reader_failed(session: Session) -> None:
    def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
        raise ValueError("cannot read")

    provider = feed_numbers(session, "f", Scripted(counting_up), tasks=2, reader=read)
    with pytest.raises(UserError, match="cannot read"):
        session.sql("select v from f").collect()
    assert (provider.ended, provider.closed) == (1, 1)


def test_closed_once_when_the_stream_is_never_read(session: Session) -> None:
    provider = feed_numbers(session, "f", Scripted(counting_up), tasks=2)
    with session.sql("select v from f").stream():
        until(lambda: provider.asked > 0, "the provider was asked")
    assert (provider.ended, provider.closed) == (1, 1)


def test_closed_once_when_the_stream_is_closed_at_once(session: Session) -> None:
    provider = feed_numbers(session, "f", Scripted(counting_up), tasks=2)
    rows = session.sql("select v from f").stream()
    rows.close()
    rows.close()
    assert provider.closed == 1
    assert provider.ended == len(provider.calls)


def test_closed_once_when_the_session_is_closed(session: Session) -> None:
    provider = feed_numbers(session, "f", Scripted(counting_up), tasks=2)
    rows = session.sql("select v from f").stream()
    until(lambda: provider.asked > 0, "the provider was asked")
    session.close()
    with pytest.raises(QueryCancelledError):
        list(rows)
    assert (provider.ended, provider.closed) == (1, 1)


def test_a_provider_that_fails_to_close_does_not_fail_the_query(session: Session) -> None:
    class Stubborn(Scripted):
        def close(self) -> None:
            super().close()
            raise OSError("cannot close")

    provider = feed_numbers(session, "f", Stubborn(range(3)), tasks=2)
    assert session.sql("select count(*) as n from f").to_pylist() == [{"n": 9}]
    assert provider.closed == 1


def test_close_wakes_a_provider_that_waits_for_it(session: Session) -> None:
    """`close` may be called while `feed` is blocked, so that it can end it."""
    closing = threading.Event()

    class Subscription(Scripted):
        def close(self) -> None:
            super().close()
            closing.set()

    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        yield from range(5)
        assert closing.wait(PATIENCE)

    provider = feed_numbers(session, "f", Subscription(script), tasks=1)
    assert session.sql("select v from f limit 4").collect().num_rows == 4
    until(lambda: provider.ended == 1, "the generator ended")


# ---- cancel and close, with providers that block


def blocking(door: Door) -> Scripted:
    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        yield 0
        door.wait()

    return Scripted(script)


@pytest.mark.sample("local", "flight", "spark-local")
def test_cancel_does_not_wait_for_a_provider_that_blocks(session: Session) -> None:
    with Door() as door:
        provider = feed_numbers(session, "f", blocking(door), tasks=2)
        running = session.sql("select k, sum(v) from f group by k").stream()
        outcome: list[BaseException | int] = []

        def read() -> None:
            try:
                outcome.append(sum(batch.num_rows for batch in running))
            except BaseException as error:
                outcome.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        door.wait_for_arrival()
        running.cancel()
        reader.join(PROMPT)
        assert not reader.is_alive(), "the reader still waited"
        running.close()
        assert isinstance(outcome[0], QueryCancelledError)
        assert provider.closed == 1
        assert provider.contexts[0].stopped
    until(lambda: provider.ended == 1, "the generator was closed, as soon as it could")
    assert_usable(session)


@pytest.mark.runners("local", "flight", reason="Spark ends the whole process of a task that it stops")
def test_cancel_stops_a_task_in_the_middle_of_its_grant(session: Session, tmp_path: Path) -> None:
    """The first unit is held until all others wait, so that the next grant has many of them."""
    session.config["sparkfusion.feed_units_ahead"] = 100
    calls = Counter(tmp_path / "calls")
    path = str(calls.path)
    with Gate(tmp_path, "first") as first, Gate(tmp_path, "next") as following:
        hold_first, hold_next = first.hold(), following.hold()

        def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
            Counter(Path(path)).add()
            (hold_next if unit.payload else hold_first)()
            return batch_of(unit.payload)

        provider = feed_numbers(session, "f", range(50), tasks=1, reader=read)
        running = session.sql("select k, sum(v) from f group by k").stream()
        first.wait_for_arrivals()
        until(lambda: provider.ended == 1, "all units were found")
        made = calls.value
        first.open()
        following.wait_for_arrivals()
        running.cancel()
        running.close()
        following.open()
        assert settled(lambda: calls.value) == made + 1
    assert_usable(session)


def test_close_does_not_wait_for_a_provider_that_blocks(session: Session) -> None:
    with Door() as door:
        provider = feed_numbers(session, "f", blocking(door), tasks=2)
        running = session.sql("select v from f").stream()
        door.wait_for_arrival()
        started = time.monotonic()
        running.close()
        assert time.monotonic() - started < PROMPT
        assert provider.closed == 1
    assert_usable(session)


def test_a_provider_may_wait_through_its_context(session: Session) -> None:
    """`wait` ends when the query needs no more, and says so; so do `on_stop` and `stopped`."""
    told: list[str] = []

    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        context.on_stop(lambda: told.append("on_stop"))
        yield from range(3)
        told.append(f"wait: {context.wait(PATIENCE)}")
        told.append(f"stopped: {context.stopped}")

    provider = feed_numbers(session, "f", Scripted(script), tasks=1)
    assert session.sql("select v from f limit 3").collect().num_rows == 3
    until(lambda: provider.ended == 1, "the generator ended")
    assert sorted(told) == ["on_stop", "stopped: True", "wait: True"]


# ---- asynchronous providers


def test_an_asynchronous_provider(session: Session) -> None:
    import asyncio

    async def script(partition: int | None, context: FeedContext) -> AsyncIterator[int]:
        for unit in range(10):
            await asyncio.sleep(0)
            yield unit

    provider = feed_numbers(session, "f", AsyncScripted(script), tasks=2)
    assert session.sql("select count(*) as n, count(distinct unit) as u from f").to_pylist() == [{"n": 30, "u": 10}]
    assert (provider.asked, provider.ended, provider.closed) == (10, 1, 1)


def test_asynchronous_partitions(session: Session) -> None:
    async def script(partition: int | None, context: FeedContext) -> AsyncIterator[int]:
        assert partition is not None
        for unit in range(partition):
            yield partition * 10 + unit

    feed_numbers(session, "f", AsyncScripted(script, partitions=4), tasks=2)
    found = session.sql("select distinct unit from f").collect().column("unit").to_pylist()
    assert sorted(found) == [10, 20, 21, 30, 31, 32]


@pytest.mark.parametrize("query", ["select v from f limit 5", "select sum(v) from f"], ids=["limit", "cancel"])
def test_an_asynchronous_provider_that_waits_for_ever_is_interrupted(session: Session, query: str) -> None:
    with Door() as door:

        async def script(partition: int | None, context: FeedContext) -> AsyncIterator[int]:
            for unit in range(2):
                yield unit
            await door.wait_async()

        provider = feed_numbers(session, "f", AsyncScripted(script), tasks=1)
        with session.sql(query).stream() as rows:
            if "limit" in query:
                assert sum(batch.num_rows for batch in rows) == 5
            else:
                door.wait_for_arrival()
                rows.cancel()
                with pytest.raises(QueryCancelledError):
                    next(rows)
        assert (provider.ended, provider.closed) == (1, 1), "its finally ran before the query was over"


def test_an_endless_asynchronous_provider_is_held_back(session: Session) -> None:
    session.config["sparkfusion.feed_units_ahead"] = AHEAD

    async def script(partition: int | None, context: FeedContext) -> AsyncIterator[int]:
        for unit in counting_up(partition, context):
            yield unit

    provider = feed_numbers(session, "f", AsyncScripted(script), tasks=2)
    assert session.sql("select v from f limit 5").collect().num_rows == 5
    assert provider.asked < 200
    assert (provider.ended, provider.closed) == (1, 1)
