"""docs/errors.md lists every error, and each one that can happen in one process is made to happen here."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import datafusion
import pyarrow as pa
import pytest
from pyarrow import flight

import sparkfusion
from sparkfusion import Session, feeds
from sparkfusion.errors import SparkfusionError, classify
from sparkfusion.exchange import frames
from sparkfusion.ids import QueryId, StageId, TaskKey
from sparkfusion.plan.wire import decode
from sparkfusion.plan.wire.survey import functions_in
from sparkfusion.runner.members import Members
from sparkfusion.transport.flight.flight_errors import flight_error
from sparkfusion.transport.membership import RoutedTask
from sparkfusion.verify import assert_distributed_eq
from sparkfusion.worker.cancel import CancelToken
from tests.docs.snippets import ROOT

PAGE = ROOT / "docs" / "errors.md"
_ROW = re.compile(r"^\| `(\w+Error)` \| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_ELSEWHERE = {
    "NotPlainFilesError": "tests/unit/feed/test_ready_tables.py",
    "OtherRowsError": "tests/unit/runner/test_passed.py",
    "ProtocolError": "tests/transport/test_codec.py",
    "WorkerLostError": "tests/unit/runner/test_machine.py",
}
"""Errors of several processes and of other packages, and the tests in which they happen."""


@pytest.fixture
def session(lineitem: Path) -> Iterator[Session]:
    split = {"sparkfusion.bytes_per_partition": 1, "sparkfusion.task_cores": 1}
    with sparkfusion.connect("local", config=split) as session:
        session.register_parquet("lineitem", str(lineitem / "data" / "lineitem"))
        yield session


def add_function(session: Session, function: Callable[[pa.Array], pa.Array]) -> None:
    session.register_udf(datafusion.udf(function, [pa.int64()], pa.int64(), "volatile", "my_function"))


def wrong_column(session: Session) -> None:
    session.sql("select no_such_column from lineitem")


def provider_that_raises(session: Session) -> None:
    class Broken(sparkfusion.WorkUnitFeedProvider):
        def feed(self, partition: int | None, context: sparkfusion.FeedContext) -> Iterator[sparkfusion.WorkUnit]:
            raise ValueError("the listing failed")

    session.register_feed("broken", Broken(), schema=pa.schema([("a", pa.int64())]), format="parquet")
    session.sql("select count(a) from broken").collect()


def stopped_query(session: Session) -> None:
    with session.sql("select * from lineitem").stream() as batches:
        next(batches)
        batches.cancel()
        list(batches)


def too_little_memory(session: Session) -> None:
    session.sql("set sparkfusion.task_memory_bytes = '64KiB'")
    session.sql("select count(*) from lineitem a join lineitem b on a.l_comment = b.l_comment").collect()


def long_list_of_values(session: Session) -> None:
    values = ", ".join(map(str, range(0, 60_000, 7)))
    session.sql("set sparkfusion.max_plan_bytes = 4096")
    session.sql(f"select count(*) from lineitem where l_orderkey * 7 in ({values})").collect()


def long_chain(session: Session) -> None:
    session.sql(f"select 1{' + 1' * 6_000}")


def full_disk(session: Session) -> None:
    def write(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames.FrameFileWriter, "write", write)
        session.sql("select l_returnflag, count(*) from lineitem group by 1").collect()


def nobody_listens(_: Session) -> None:
    with free_port() as port, sparkfusion.connect(f"flight://127.0.0.1:{port}?token={'x' * 20}") as session:
        session.sql("select * from (values (1)) t(a)").collect()
        session.config["sparkfusion.bytes_per_partition"] = 1
        session.register_parquet("lineitem", "data/lineitem/")
        session.sql("select count(l_orderkey) from lineitem where l_quantity > 3").collect()


def process_that_ends(session: Session) -> None:
    def end(values: pa.Array) -> pa.Array:
        os._exit(7)

    add_function(session, end)
    session.sql("set sparkfusion.task_processes = true")
    session.sql("select sum(my_function(l_orderkey)) from lineitem").collect()


def defect(_: Session) -> None:
    raise classify(Exception("DataFusion error: Internal error: a defect"))


def other_bytes(_: Session) -> None:
    decode(b"these are no plan")


def query_that_is_not_distributed(session: Session) -> None:
    assert_distributed_eq(session, "select 1")


def unknown_setting(session: Session) -> None:
    session.config["sparkfusion.slot"] = 4


def refused_in_the_dialect(session: Session) -> None:
    session.sql("select * from lineitem tablesample (10 percent)", dialect="spark")


def wrong_token(_: Session) -> None:
    raise flight_error(flight.FlightUnauthenticatedError("no"), "127.0.0.1:7070")


def unknown_plan(_: Session) -> None:
    functions_in(b"\xfa\x7f\x01a")


def silent_service(session: Session) -> None:
    with free_port() as port:
        columns, paging = pa.schema([("a", pa.int64())]), feeds.PageNumber(pages=2)
        session.register_feed("pages", feeds.HttpPages(f"http://127.0.0.1:{port}/", schema=columns, next=paging))
        session.sql("select * from pages").collect()


def no_worker_left(_: Session) -> None:
    task = RoutedTask(TaskKey(QueryId("q"), StageId(1), 0, 0), {})
    with Members([], None).place_task(task, (), CancelToken()):
        pass


def worker_that_is_gone(_: Session) -> None:
    Members([], None).peer("127.0.0.1:7070")


@contextmanager
def free_port() -> Iterator[int]:
    """A port at which nobody listens, as long as the `with` lasts."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


MADE: dict[str, Callable[[Session], None]] = {
    "UserError": wrong_column,
    "FeedError": provider_that_raises,
    "QueryCancelledError": stopped_query,
    "ResourceError": too_little_memory,
    "PlanTooLargeError": long_list_of_values,
    "PlanTooDeepError": long_chain,
    "StoreFullError": full_disk,
    "ExternalError": nobody_listens,
    "TaskCrashError": process_that_ends,
    "InternalError": defect,
    "WireFormatError": other_bytes,
    "VerificationError": query_that_is_not_distributed,
    "UnknownSettingError": unknown_setting,
    "NotInDialectError": refused_in_the_dialect,
    "RefusedError": wrong_token,
    "UnknownPlanError": unknown_plan,
    "UnavailableError": silent_service,
    "LostInputError": worker_that_is_gone,
    "NoWorkerError": no_worker_left,
}


def every_class() -> dict[str, type[SparkfusionError]]:
    for module in pkgutil.walk_packages(sparkfusion.__path__, "sparkfusion."):
        importlib.import_module(module.name)
    found, waiting = {}, [SparkfusionError]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("sparkfusion."):
            found[kind.__name__] = kind
    return found


def test_every_class_has_a_row_with_its_base_cause_and_remedy() -> None:
    rows = {
        name: base for name, base, cause, remedy in _ROW.findall(PAGE.read_text()) if cause.strip() and remedy.strip()
    }
    classes = {name: kind.__bases__[0].__name__ for name, kind in every_class().items() if kind is not SparkfusionError}
    assert rows == classes


def test_every_class_is_made_to_happen_somewhere() -> None:
    assert {*MADE, *_ELSEWHERE} == every_class().keys() - {"SparkfusionError"}
    assert [name for name, path in _ELSEWHERE.items() if name not in (ROOT / path).read_text()] == []


@pytest.mark.parametrize("name", MADE)
def test_an_error_happens_as_the_page_says(session: Session, name: str) -> None:
    with pytest.raises(SparkfusionError) as caught:
        MADE[name](session)
    assert type(caught.value).__name__ == name
    assert caught.value.message
