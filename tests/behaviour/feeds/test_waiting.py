"""Discovery and reading overlap; a feed that waits delays only what needs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from sparkfusion import FeedContext, ReaderContext, Session, WorkUnit
from tests.behaviour.probes import PATIENCE, Gate, until
from tests.suites.feeds import (
    ONE_STORE,
    Door,
    Scripted,
    batch_of,
    exactly_once,
    feed_numbers,
    read_number,
    units_seen,
)

pytestmark = ONE_STORE

ROWS_AT_THE_END = "on Spark a task's rows come when it is done"


@pytest.mark.runners("local", "flight", reason=ROWS_AT_THE_END)
def test_rows_reach_the_reader_before_the_listing_ends(session: Session) -> None:
    """The provider goes on only when the reader has rows of its first units: listing first would wait for ever."""
    first_rows = threading.Event()

    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        yield from range(3)
        assert first_rows.wait(PATIENCE), "no rows while the listing went on"
        yield from range(3, 10)

    feed_numbers(session, "f", Scripted(script), tasks=2)
    with session.sql("select unit from f where v >= 0").stream() as rows:
        seen = [next(rows)]
        first_rows.set()
        seen += list(rows)
    assert units_seen(pa.Table.from_batches(seen)) == exactly_once(range(10))


@pytest.mark.parametrize(
    "query",
    ["select unit from f", "select unit from f where v >= 0 order by v", "select unit, sum(v) from f group by unit, v"],
)
def test_units_are_read_while_the_listing_goes_on(session: Session, tmp_path: Path, query: str) -> None:
    """The provider goes on only when a task has read a unit, whatever stands above."""
    with Gate(tmp_path) as gate:
        gate.open()
        ring = gate.hold()

        def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
            ring()
            return batch_of(unit.payload)

        def script(partition: int | None, context: FeedContext) -> Iterator[int]:
            for unit in range(4):
                yield unit
                gate.wait_for_arrivals()

        feed_numbers(session, "f", Scripted(script), tasks=2, reader=read)
        assert units_seen(session.sql(query).collect()) == exactly_once(range(4))


def test_a_waiting_feed_delays_only_its_own_branch_of_a_union(session: Session) -> None:
    with Door() as door:

        def late(partition: int | None, context: FeedContext) -> Iterator[int]:
            door.wait()
            yield 100

        feed_numbers(session, "prompt", range(5), tasks=1)
        feed_numbers(session, "late", Scripted(late), tasks=1)
        with session.sql("select unit from late union all select unit from prompt").stream() as rows:
            seen: list[pa.RecordBatch] = []
            while sum(batch.num_rows for batch in seen) < 15:
                seen.append(next(rows))
            assert units_seen(pa.Table.from_batches(seen)) == exactly_once(range(5))
            door.open()
            seen += list(rows)
    assert units_seen(pa.Table.from_batches(seen)) == exactly_once([*range(5), 100])


def test_a_waiting_feed_does_delay_what_needs_it(session: Session) -> None:
    """A join's answer waits for both: nothing comes before the late one is there."""
    with Door() as door:

        def late(partition: int | None, context: FeedContext) -> Iterator[int]:
            door.wait()
            yield from range(5)

        feed_numbers(session, "prompt", range(5), tasks=2)
        feed_numbers(session, "late", Scripted(late), tasks=2)
        seen: list[int] = []
        with session.sql("select prompt.v from prompt join late on prompt.v = late.v").stream() as rows:
            reader = threading.Thread(target=lambda: seen.extend(batch.num_rows for batch in rows))
            reader.start()
            door.wait_for_arrival()
            until(lambda: any(each.handed == 5 for each in rows.feeds()), "the prompt feed was read")
            assert seen == []
            door.open()
            reader.join(PATIENCE)
    assert sum(seen) == 15


def test_a_slow_feed_does_not_corrupt_another(session: Session) -> None:
    """Two feeds in two stages take turns: each gives a unit when the other has given one."""
    turns = [threading.Semaphore(1), threading.Semaphore(0)]

    def alternating(own: int) -> Scripted:
        def script(partition: int | None, context: FeedContext) -> Iterator[int]:
            for unit in range(8):
                assert turns[own].acquire(timeout=PATIENCE)
                yield unit
                turns[1 - own].release()

        return Scripted(script)

    feed_numbers(session, "a", alternating(0), tasks=2)
    feed_numbers(session, "b", alternating(1), tasks=2)
    found = session.sql("select a.unit, a.v, b.v as w, a.s, b.s as z from a join b on a.v = b.v").collect()
    assert units_seen(found) == exactly_once(range(8))
    assert found.column("v").to_pylist() == found.column("w").to_pylist()
    assert found.column("s").to_pylist() == found.column("z").to_pylist()


def test_units_that_come_one_by_one_reach_all_tasks_that_wait(session: Session) -> None:
    """Each unit is given out only after the one before was read: no task may keep it waiting."""
    asked = threading.Semaphore(1)

    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        for unit in range(12):
            assert asked.acquire(timeout=PATIENCE)
            yield unit

    provider = Scripted(script)
    feed_numbers(session, "f", provider, tasks=3, reader=read_number)
    stream = session.sql("select unit from f where v >= 0 order by v").stream()
    with stream as rows:
        for done in range(1, 13):
            asked.release()
            until(lambda done=done: rows.feeds()[0].handed >= done, f"unit {done} was handed out")  # type: ignore[misc]
        found = pa.Table.from_batches(list(rows))
    assert units_seen(found) == exactly_once(range(12))


def test_a_partition_that_waits_does_not_hold_up_the_others(session: Session, tmp_path: Path) -> None:
    """Partition 0 gives its unit only after units of all other partitions were read."""
    with Gate(tmp_path) as gate:
        gate.open()
        ring = gate.hold()

        def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
            if unit.payload:
                ring()
            return batch_of(unit.payload)

        def script(partition: int | None, context: FeedContext) -> Iterator[int]:
            assert partition is not None
            if partition == 0:
                gate.wait_for_arrivals(5)
            yield partition

        feed_numbers(session, "f", Scripted(script, partitions=6), tasks=2, reader=read)
        assert units_seen(session.sql("select unit from f").collect()) == exactly_once(range(6))


@pytest.mark.runners("local", "flight", reason="on Spark a task that waits for units keeps its slot")
def test_tasks_that_wait_for_units_leave_their_slots_to_others(session: Session) -> None:
    """One slot, and the feed that waits is first: the other feed's tasks have to get through."""
    session.config["sparkfusion.slots"] = 1
    with Door() as door:

        def late(partition: int | None, context: FeedContext) -> Iterator[int]:
            door.wait()
            yield 7

        def prompt(partition: int | None, context: FeedContext) -> Iterator[int]:
            yield from range(7)
            door.open()

        feed_numbers(session, "late", Scripted(late), tasks=3)
        feed_numbers(session, "prompt", Scripted(prompt), tasks=3)
        found = session.sql("select unit from late union all select unit from prompt").collect()
    assert units_seen(found) == exactly_once(range(8))
