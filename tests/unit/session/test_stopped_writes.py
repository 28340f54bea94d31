"""A write that is stopped writes nothing, also if its query is just being started, or has just ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sparkfusion
from sparkfusion import QueryCancelledError, RunningQuery, Session
from sparkfusion.observe.events import Event, QueryFinished, QueryPlanned
from tests.behaviour.parts import DISTRIBUTED, write_parts

STOPS = {"cancel": RunningQuery.cancel, "close": RunningQuery.close}
COPIES = {"by tasks": "written/", "by the coordinator": "written.parquet"}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with sparkfusion.connect(config=DISTRIBUTED) as session:
        session.register_parquet("t", write_parts(tmp_path))
        yield session


def run_stopped(
    session: Session, statement: str, stop: Callable[[RunningQuery], None], at: type[Event] = QueryPlanned
) -> None:
    """Run a write, and stop it at this event of its query, as another thread may do."""

    def stop_it(event: Event) -> None:
        if isinstance(event, at):
            stop(running)

    running = session.lazy_sql(statement).stream()
    unsubscribe = session.subscribe(stop_it)
    try:
        running.read_all()
    finally:
        unsubscribe()


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("written", COPIES)
def test_a_copy_leaves_no_files(session: Session, tmp_path: Path, written: str, stop: str) -> None:
    target = f"{tmp_path}/new/{COPIES[written]}"
    with pytest.raises(QueryCancelledError):
        run_stopped(session, f"copy t to '{target}' stored as parquet", STOPS[stop])
    assert not Path(target).exists()


@pytest.mark.parametrize("stop", STOPS)
def test_a_copy_by_tasks_does_not_keep_complete_files(session: Session, tmp_path: Path, stop: str) -> None:
    with pytest.raises(QueryCancelledError):
        run_stopped(session, f"copy t to '{tmp_path}/new/' stored as parquet", STOPS[stop], at=QueryFinished)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("at", [QueryPlanned, QueryFinished])
def test_an_insert_overwrite_leaves_the_old_rows(session: Session, stop: str, at: type[Event]) -> None:
    session.sql("create table old as select v from t where v < 3")
    with pytest.raises(QueryCancelledError):
        run_stopped(session, "insert overwrite old select v from t", STOPS[stop], at=at)
    assert session.table("old").count() == 3
