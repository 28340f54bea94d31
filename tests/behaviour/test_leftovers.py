"""What a query makes in the temporary directory goes with the query, not with the session."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from sparkfusion import Session, SparkfusionError
from tests.behaviour.parts import DISTRIBUTED, write_parts
from tests.behaviour.probes import PATIENCE
from tests.conftest import Connect

TIMES = 4


def _aggregate(session: Session) -> None:
    session.sql("select k, count(*) from t group by k").collect()


def _fail(session: Session) -> None:
    with suppress(SparkfusionError):
        session.sql("select sum(10 / (v - 7)) from t").collect()


def _half_read(session: Session) -> None:
    with session.sql("select * from t").stream() as stream:
        next(iter(stream))


@pytest.mark.runners("local", "flight", reason="Spark keeps files of its own in the same directory")
@pytest.mark.parametrize("run", [_aggregate, _fail, _half_read])
def test_queries_leave_no_files(connect: Connect, tmp_path: Path, run: Callable[[Session], None]) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    run(session)
    before = _entries()
    for _ in range(TIMES):
        run(session)
    deadline = time.monotonic() + PATIENCE
    while (left := _entries() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not left


def _entries() -> set[Path]:
    walked = os.walk(tempfile.gettempdir())  # unlike `rglob` it does not mind what goes meanwhile
    return {Path(parent, name) for parent, directories, files in walked for name in (*directories, *files)}
