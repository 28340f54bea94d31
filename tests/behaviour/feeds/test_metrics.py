"""What a feed does is counted, told while it happens, and shown."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from sparkfusion import FeedContext, ReaderContext, Session, WorkUnit
from sparkfusion.observe.events import Event, FeedProgress, QueryFinished
from tests.behaviour.parts import record
from tests.runners import LOCAL, Runner
from tests.suites.feeds import ONE_STORE, Scripted, batch_of, feed_numbers

pytestmark = ONE_STORE

UNITS = 50


def test_counts_of_a_whole_query(session: Session) -> None:
    session.config["sparkfusion.feed_units_ahead"] = 7
    feed_numbers(session, "f", range(UNITS), tasks=2)
    with session.sql("select unit, count(*) from f group by unit").stream() as rows:
        assert sum(batch.num_rows for batch in rows) == UNITS
        (stats,) = rows.feeds()
        assert sum(report.units for report in rows.reports()) == UNITS
    assert (stats.table, stats.found, stats.handed, stats.done) == ("f", UNITS, UNITS, UNITS)
    assert (stats.replayed, stats.failed, stats.waiting, stats.discovering) == (0, 0, 0, False)
    assert 1 <= stats.most_waiting <= 7
    assert stats.first_unit_seconds is not None
    assert stats.first_unit_seconds >= 0
    assert stats.wait_seconds >= 0


def test_counts_of_an_empty_feed(session: Session) -> None:
    feed_numbers(session, "f", [], tasks=2)
    with session.sql("select v from f").stream() as rows:
        assert list(rows) == []
        (stats,) = rows.feeds()
    assert (stats.found, stats.handed, stats.done, stats.most_waiting) == (0, 0, 0, 0)
    assert stats.first_unit_seconds is None
    assert not stats.discovering


def test_counts_of_a_partitioned_feed(session: Session) -> None:
    session.config["sparkfusion.feed_units_ahead"] = 6
    feed_numbers(session, "f", Scripted(lambda partition, context: range(10), partitions=5), tasks=2)
    with session.sql("select sum(v) from f").stream() as rows:
        list(rows)
        (stats,) = rows.feeds()
    assert (stats.found, stats.handed, stats.done, stats.waiting) == (50, 50, 50, 0)
    assert stats.most_waiting <= 6


def test_each_scan_has_counts_of_its_own(session: Session) -> None:
    feed_numbers(session, "f", range(4), tasks=2)
    feed_numbers(session, "g", range(9), tasks=2)
    with session.sql("select f.v from f join g on f.v = g.v join f h on h.v = g.v").stream() as rows:
        list(rows)
        stats = rows.feeds()
    assert sorted((each.table, each.done) for each in stats) == [("f", 4), ("f", 4), ("g", 9)]


def test_replays_and_failures_are_counted(session: Session, tmp_path: Path) -> None:
    mark = str(tmp_path / "mark")

    def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
        if unit.payload == 5:
            try:
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                raise ConnectionError("once")
        return batch_of(unit.payload)

    session.config["sparkfusion.feed_units_ahead"] = 1
    feed_numbers(session, "f", range(8), tasks=1, reader=read)
    with session.sql("select sum(v) from f").stream() as rows:
        list(rows)
        (stats,) = rows.feeds()
    assert (stats.found, stats.handed, stats.done) == (8, 8, 8)
    assert stats.replayed >= 6, "the first six units were given again"
    assert stats.failed >= 1


def test_a_limit_leaves_units_that_are_not_done(session: Session) -> None:
    session.config["sparkfusion.feed_units_ahead"] = 3
    feed_numbers(session, "f", range(1000), tasks=1)
    with session.sql("select v from f limit 4").stream() as rows:
        assert sum(batch.num_rows for batch in rows) == 4
        (stats,) = rows.feeds()
    assert stats.done <= stats.handed <= stats.found < 1000
    assert stats.most_waiting <= 3
    assert not stats.discovering


def test_a_providers_own_counts(session: Session) -> None:
    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        for page in range(3):
            context.count("pages")
            context.count("bytes", 100)
            yield page

    feed_numbers(session, "f", Scripted(script))
    with session.sql("select v from f").stream() as rows:
        list(rows)
        (stats,) = rows.feeds()
    assert stats.provider == (("bytes", 300), ("pages", 3))


def progress_of(events: list[Event]) -> list[FeedProgress]:
    return [event for event in events if isinstance(event, FeedProgress)]


@pytest.mark.parametrize("partitions", [None, 3])
def test_progress_only_grows_and_ends(session: Session, partitions: int | None) -> None:
    script = range(40) if partitions is None else lambda partition, context: range(10)
    feed_numbers(session, "f", Scripted(script, partitions), tasks=2)
    events = record(session)
    session.sql("select sum(v) from f").collect()
    told = progress_of(events)
    for before, after in itertools.pairwise(told):
        assert before.found <= after.found
        assert before.handed <= after.handed
        assert before.done <= after.done
        assert before.discovering or not after.discovering
    for each in told:
        assert each.done <= each.handed <= each.found
    last, total = told[-1], 40 if partitions is None else 30
    assert (last.table, last.found, last.handed, last.done, last.discovering) == ("f", total, total, total, False)
    names = [type(event).__name__ for event in events]
    assert names.index("FeedProgress") < names.index("QueryFinished")
    assert isinstance(events[-1], QueryFinished), "nothing is told after the end"


def test_progress_of_a_query_that_is_stopped_ends_too(session: Session) -> None:
    feed_numbers(session, "f", range(100_000), tasks=2)
    events = record(session)
    with session.sql("select v from f").stream() as rows:
        next(rows)
    assert not progress_of(events)[-1].discovering


def test_a_subscriber_that_fails_does_not_disturb_the_feed(session: Session) -> None:
    def fail(event: Event) -> None:
        if isinstance(event, FeedProgress):
            raise ValueError("the dashboard is gone")

    session.subscribe(fail)
    feed_numbers(session, "f", range(20), tasks=2)
    assert session.sql("select count(*) as n from f").to_pylist() == [{"n": 60}]


def test_explain_names_the_feed(session: Session, runner: Runner) -> None:
    feed_numbers(session, "f", range(20), tasks=2)
    frame = session.sql("select k, sum(v) from f group by k")
    assert "f" in frame.explain_text()
    assert "placeholder" not in frame.explain_text()
    analyzed = frame.explain_text(analyze=True)
    assert "60 rows" in analyzed
    if runner.name == LOCAL:
        assert "20 units" in analyzed or "units=20" in analyzed, "how many units were read is shown"
