"""Feeds on Spark Connect: tasks that reach this program ask it for units, and others find them in the store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparkfusion import FeedContext, QueryCancelledError, ReaderContext, Session, UserError, WorkUnit
from sparkfusion.runner.spark.connect.application import ConnectApplication
from sparkfusion.runner.spark.driver_calls.certificate import Certificate
from sparkfusion.runner.spark.driver_calls.feed_server import FeedServer
from sparkfusion.runner.spark.mail.mailbox import BEAT
from tests.behaviour.parts import DISTRIBUTED
from tests.conftest import Connect
from tests.suites.fake_s3 import fake_s3
from tests.suites.feeds import Scripted, batch_of, exactly_once, feed_numbers, units_seen

pytestmark = pytest.mark.long  # it starts a server with a JVM of its own

UNITS = range(30)
ALL = "select unit, v from f"
MAILBOX = {"sparkfusion.feed_transport": "mailbox"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made = tmp_path / "store"
    made.mkdir()
    return made


def shared(store: Path) -> dict[str, object]:
    return {**DISTRIBUTED, "sparkfusion.store": "shared", "sparkfusion.store_dir": str(store)}


def fail_once(marks: Path, bad: int) -> Callable[[WorkUnit, ReaderContext], pa.RecordBatch]:
    mark = marks / "failed"

    def read(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
        if unit.payload == bad and not mark.exists():
            mark.touch()
            raise ConnectionError("reset by peer")
        return batch_of(unit.payload)

    return read


def break_after_two(partition: int | None, context: FeedContext) -> Iterator[int]:
    yield from (0, 1)
    raise ValueError("the listing is broken")


def servers(session: Session) -> Any:
    return session._engine._runner._feeding._servers  # type: ignore[attr-defined]


def test_units_go_through_the_store_where_tasks_run_elsewhere(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, store: Path
) -> None:
    """No address is known at which tasks reach this program, so none is opened. A failed attempt is repeated."""
    session = connect({**shared(store), "sparkfusion.feed_units_ahead": 4})
    provider = feed_numbers(session, "f", UNITS, tasks=2, reader=fail_once(tmp_path, 17))
    monkeypatch.setattr(ConnectApplication, "is_near", lambda self: False)
    assert units_seen(session.sql(ALL).collect()) == exactly_once(UNITS)
    assert (tmp_path / "failed").exists()
    assert servers(session) == {}
    assert (provider.asked, provider.closed) == (len(UNITS), 1)
    assert list(store.iterdir()) == []


def test_an_address_that_tasks_do_not_reach_is_not_used(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The server of the session does not listen, as if a firewall were between."""
    make = FeedServer.__init__

    def make_deaf(self: FeedServer, bind: str, port: int, certificate: Certificate | None = None) -> None:
        make(self, bind, port, certificate)
        self.stop()

    monkeypatch.setattr(FeedServer, "__init__", make_deaf)
    session = connect({**shared(store), "sparkfusion.feed_host": "127.0.0.1"})
    feed_numbers(session, "f", UNITS, tasks=2)
    with caplog.at_level(logging.WARNING, logger="sparkfusion"):
        for _ in range(2):
            found = session.sql("select unit % 3 as k, count(*) as n from f group by 1").to_pylist()
            assert sorted((row["k"], row["n"]) for row in found) == [(0, 30), (1, 30), (2, 30)]
    told = [record.getMessage() for record in caplog.records if "cannot connect to this program" in record.getMessage()]
    assert len(told) == 1, "only once"
    assert list(store.iterdir()) == []


def test_an_address_that_tasks_reach_is_used(connect: Connect, store: Path) -> None:
    session = connect({**shared(store), "sparkfusion.feed_host": "127.0.0.1"})
    feed_numbers(session, "f", range(3))
    assert session.sql("select count(*) as n from f").to_pylist() == [{"n": 9}]
    assert len(servers(session)) == 1


def test_units_in_a_bucket(connect: Connect) -> None:
    with fake_s3() as server:
        session = connect({**DISTRIBUTED, **MAILBOX, "sparkfusion.store_dir": server.url("frames")})
        feed_numbers(session, "f", UNITS, tasks=2)
        assert units_seen(session.sql(ALL).collect()) == exactly_once(UNITS)
        assert any("PUT" in request and BEAT in request for request in server.requests)
        assert server.names() == []


def test_errors_and_ends_cross(connect: Connect, store: Path) -> None:
    """The same session: a provider that fails, a reader that fails, a LIMIT over an endless feed, a cancelled query."""
    session = connect({**shared(store), **MAILBOX})
    feed_numbers(session, "broken", Scripted(break_after_two), tasks=1)
    with pytest.raises(UserError, match="the feed of table 'broken' failed: ValueError: the listing is broken"):
        session.sql("select count(*) from broken").collect()

    def refuse(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
        raise ValueError("a broken page")

    feed_numbers(session, "unread", range(3), tasks=1, reader=refuse)
    with pytest.raises(UserError, match="the reader of table 'unread' failed on unit 0: ValueError: a broken page"):
        session.sql("select count(*) from unread").collect()
    endless = feed_numbers(session, "endless", Scripted(range(10**9)), tasks=2)
    assert session.sql("select v from endless limit 5").collect().num_rows == 5
    running = session.sql("select v from endless").stream()
    next(running)
    running.cancel()
    with pytest.raises(QueryCancelledError):
        list(running)
    assert endless.closed == 2
    assert list(store.iterdir()) == []


def test_a_service_needs_an_address(connect: Connect, monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    session = connect({**shared(store), "sparkfusion.feed_transport": "service"})
    feed_numbers(session, "f", range(3))
    monkeypatch.setattr(ConnectApplication, "is_near", lambda self: False)
    with pytest.raises(UserError, match="needs an address of this machine") as caught:
        session.sql("select count(*) as n from f").collect()
    assert "sparkfusion.feed_host" in (caught.value.hint or "")
    assert "mailbox" in (caught.value.hint or "")
