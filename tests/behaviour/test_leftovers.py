"""What a query makes in the temporary directory goes with the query, not with the session."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from sparkfusion import Session, SparkfusionError
from tests.behaviour.parts import DISTRIBUTED, write_parts
from tests.behaviour.probes import until
from tests.conftest import Connect
from tests.suites.feeds import feed_numbers

pytestmark = pytest.mark.sample("local", "flight", "spark-local")

TIMES = 4
OWN_FILES = pytest.mark.runners("local", "flight", reason="Spark keeps files of its own in the same directory")


def _aggregate(session: Session) -> None:
    session.sql("select k, count(*) from t group by k").collect()


def _fail(session: Session) -> None:
    with suppress(SparkfusionError):
        session.sql("select sum(10 / (v - 7)) from t").collect()


def _half_read(session: Session) -> None:
    with session.sql("select * from t").stream() as stream:
        next(iter(stream))


def _feed(session: Session) -> None:
    feed_numbers(session, "fed", range(3))
    assert session.sql("select count(*) as n from fed").to_pylist() == [{"n": 9}]
    session.deregister_table("fed")
    feed_numbers(session, "fed", range(3))
    session.sql("drop /* it */ table fed")


@OWN_FILES
@pytest.mark.parametrize("run", [_aggregate, _fail, _half_read, _feed])
def test_queries_leave_no_files(connect: Connect, tmp_path: Path, run: Callable[[Session], None]) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    run(session)
    before = _entries()
    for _ in range(TIMES):
        run(session)
    _wait_for_no_new_entries(before)


@OWN_FILES
def test_a_feed_is_there_as_long_as_a_frame_reads_it(connect: Connect, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED)
    feed_numbers(session, "other", range(3))
    before = _entries()
    feed_numbers(session, "fed", range(3))
    frame = session.sql("select k from fed").limit(100)
    session.sql("create view seen as select k from fed where k < 1000")
    session.sql(f"create or replace external table fed stored as parquet location '{write_parts(tmp_path)}'")
    session.sql("drop table fed")
    feed_numbers(session, "fed", range(5))
    assert frame.count() == session.table("seen").count() == 9
    assert session.sql("select count(*) as n from fed").to_pylist() == [{"n": 15}]
    session.sql("drop table fed")
    session.sql("drop view seen")
    assert frame.count() == 9
    del frame
    _wait_for_no_new_entries(before)


def _wait_for_no_new_entries(before: set[Path]) -> None:
    """Workers remove what they have when they are told to, a moment later."""

    def are_gone() -> bool:
        gc.collect()
        return _entries() <= before

    until(are_gone, "nothing is there that was not")


def _entries() -> set[Path]:
    walked = os.walk(tempfile.gettempdir())  # unlike `rglob` it does not mind what goes meanwhile
    return {Path(parent, name) for parent, directories, files in walked for name in (*directories, *files)}
