"""Tasks that crash, hang and leak in child processes: the worker, and the program, go on."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import ScalarUDF, udf

import sparkfusion
from sparkfusion import (
    Cluster,
    FeedContext,
    QueryCancelledError,
    Session,
    SparkfusionError,
    TaskCrashError,
    UserError,
    WorkUnit,
    WorkUnitFeedProvider,
)
from sparkfusion.observe.events import Event, TaskFailed
from sparkfusion.transport.process import supervised
from sparkfusion.worker.server.guard import Guard
from sparkfusion.worker.server.worker_options import WorkerOptions
from tests.behaviour.probes import Counter, Gate, until
from tests.in_process_workers import start_worker as start_in_process
from tests.in_process_workers import stop_worker
from tests.leaks import TASK_PROCESS
from tests.runners import SPLIT, some_first
from tests.transport.conftest import StartWorker
from tests.worker_processes import IDLE, WorkerProcess, url_of

MANY_TASKS = {**SPLIT, "sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": 4}
PAGE = pa.schema([("v", pa.int64())])
ONE_SLOT = ("--slots", "1", "--trust-python")
SUMMED = "select k, sum(odd(v)) as s from t group by k order by k"


class Home:
    """Where tasks run in child processes: a session, and the process that supervises them."""

    def __init__(self, session: Session, supervisor: int, worker: WorkerProcess | None) -> None:
        self.session = session
        self.supervisor = psutil.Process(supervisor)
        self.worker = worker

    def children(self) -> list[psutil.Process]:
        return [each for each in self.supervisor.children() if TASK_PROCESS in " ".join(each.cmdline())]


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    with WorkerProcess(tmp_path_factory.mktemp("worker"), *ONE_SLOT) as worker:
        yield worker


@pytest.fixture(params=["worker", pytest.param("embedded", marks=pytest.mark.long)])
def home(request: pytest.FixtureRequest, tmp_path: Path, worker: WorkerProcess) -> Iterator[Home]:
    """One slot, so a task that held it for ever would be noticed."""
    table = write_t(tmp_path)
    if request.param == "embedded":
        settings = {**MANY_TASKS, "sparkfusion.slots": 1, "sparkfusion.task_processes": True}
        with sparkfusion.connect(config=settings) as session:
            session.register_parquet("t", table)
            yield Home(session, os.getpid(), None)
        return
    with sparkfusion.connect(url_of([worker]), config=MANY_TASKS) as session:
        session.register_parquet("t", table)
        yield Home(session, worker.process.pid, worker)
    until(lambda: worker.status() == IDLE, "nothing is left on the worker")


def write_t(directory: Path) -> Path:
    path = directory / "t"
    path.mkdir()
    for part in range(4):
        table = pa.table({"k": [0, 1, 2] * 100, "v": range(300 * part, 300 * part + 300)})
        pq.write_table(table, path / f"{part}.parquet")
    return path


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class Page(WorkUnitFeedProvider):
    """One unit."""

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[WorkUnit]:
        return iter([WorkUnit(1)])


def odd_udf(act: Callable[[], object], counter: Counter, times: int) -> ScalarUDF:
    """Gives its argument back, and acts on its first calls."""

    def odd(values: pa.Array) -> pa.Array:
        counter.add()
        if counter.value <= times:
            act()
        return values

    return udf(odd, [pa.int64()], pa.int64(), "volatile", "odd")


def expected(session: Session) -> list[dict[str, Any]]:
    return session.sql(SUMMED.replace("odd(v)", "v")).to_pylist()


def failures(session: Session) -> list[TaskFailed]:
    seen: list[TaskFailed] = []

    def hear(event: Event) -> None:
        if isinstance(event, TaskFailed):
            seen.append(event)

    session.subscribe(hear)
    return seen


DEATHS = {
    "a native crash": (lambda: os.kill(os.getpid(), signal.SIGSEGV), "was killed by SIGSEGV"),
    "out of memory": (lambda: os.kill(os.getpid(), signal.SIGKILL), "was killed by SIGKILL"),
    "an exit": (lambda: os._exit(3), "exited with status 3"),
}


@pytest.mark.parametrize(("act", "words"), some_first(DEATHS, ["a native crash"]))
def test_a_process_that_dies_costs_one_attempt(
    home: Home, tmp_path: Path, act: Callable[[], object], words: str
) -> None:
    right = expected(home.session)
    home.session.register_udf(odd_udf(act, Counter(tmp_path / "calls"), times=1))
    failed = failures(home.session)
    assert home.session.sql(SUMMED).to_pylist() == right
    (failure,) = failed
    assert failure.retried
    assert words in failure.message


@pytest.mark.long
def test_a_task_that_ends_two_processes_fails_and_others_go_on(home: Home, tmp_path: Path) -> None:
    calls = Counter(tmp_path / "calls")
    right = expected(home.session)
    home.session.register_udf(odd_udf(lambda: os.kill(os.getpid(), signal.SIGSEGV), calls, times=1000))
    with pytest.raises(TaskCrashError, match=r"was killed by SIGSEGV.*not retried after 2 such attempts") as failed:
        home.session.sql(SUMMED).collect()
    assert failed.value.where is not None
    assert failed.value.hint is not None
    home.session.deregister_udf("odd")
    assert expected(home.session) == right


def test_a_process_that_was_killed_while_idle_is_replaced(home: Home) -> None:
    right = expected(home.session)
    failed = failures(home.session)
    (child,) = home.children()
    child.kill()
    until(lambda: not is_alive(child))
    assert expected(home.session) == right
    assert failed == []
    (fresh,) = home.children()
    assert fresh.pid != child.pid


HANGS = {
    "a function": "select k, sum(odd(v)) as s from t group by k",
    "a reader": "select sum(v) from pages",
}


@pytest.mark.parametrize("query", some_first(HANGS, ["a function"]))
def test_a_function_that_hangs_is_ended_some_time_after_the_cancel(home: Home, tmp_path: Path, query: str) -> None:
    """It waits at a gate that is never opened, and would hold the only slot."""
    right = expected(home.session)
    with Gate(tmp_path) as gate:
        hold = gate.hold()
        home.session.register_udf(odd_udf(hold, Counter(tmp_path / "calls"), times=1000))
        home.session.register_feed("pages", Page(), schema=PAGE, reader=lambda unit, context: hold())
        hung = home.session.sql(query).stream()
        cancelled: list[BaseException] = []

        def read() -> None:
            try:
                list(hung)
            except QueryCancelledError as error:
                cancelled.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        gate.wait_for_arrivals()
        busy = home.children()
        hung.cancel()
        reader.join()
        assert len(cancelled) == 1
        until(lambda: not all(is_alive(child) for child in busy))  # another one may have run a task that did not hang
        assert expected(home.session) == right


def test_processes_are_used_again_until_they_are_worn(monkeypatch: pytest.MonkeyPatch, home: Home) -> None:
    right = expected(home.session)
    (first,) = home.children()
    assert expected(home.session) == right
    assert home.children() == [first]
    if home.worker is None:
        monkeypatch.setattr(supervised, "_MOST_TASKS", 10)
        assert expected(home.session) == right
        assert first not in home.children()


def test_a_ctrl_c_in_the_terminal_does_not_reach_them(home: Home) -> None:
    expected(home.session)
    (child,) = home.children()
    assert os.getpgid(child.pid) != os.getpgid(home.supervisor.pid)


def test_they_end_with_their_session(home: Home) -> None:
    expected(home.session)
    children = home.children()
    home.session.close()
    if home.worker is None:
        assert not any(psutil.pid_exists(child.pid) for child in children)
    else:
        assert home.children() == children, "a worker keeps them for the next session"


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_they_end_with_their_worker(start_worker: StartWorker, tmp_path: Path, number: signal.Signals) -> None:
    """However it ends, and whatever they do: one runs a function that hangs."""
    worker = start_worker(*ONE_SLOT)
    settings = {**MANY_TASKS, "sparkfusion.worker_patience_seconds": 2}
    with Gate(tmp_path) as gate, sparkfusion.connect(url_of([worker]), config=settings) as session:
        session.register_parquet("t", write_t(tmp_path))
        session.register_udf(odd_udf(gate.hold(), Counter(tmp_path / "calls"), times=1000))
        running = session.sql(SUMMED).stream()
        gate.wait_for_arrivals()
        (child,) = psutil.Process(worker.process.pid).children()
        worker.send(number)
        worker.process.wait()
        until(lambda: not is_alive(child))
        with pytest.raises(SparkfusionError):
            list(running)


def test_a_reader_that_cannot_be_pickled_is_named() -> None:
    lock = threading.Lock()

    def read(unit: WorkUnit, context: Any) -> pa.RecordBatch:
        with lock:
            return pa.record_batch({"v": [1]})

    with sparkfusion.connect(config={**MANY_TASKS, "sparkfusion.task_processes": True}) as session:
        session.register_feed("pages", Page(), schema=PAGE, reader=read)
        with pytest.raises(
            UserError, match=r"reader of table 'pages' cannot be sent to task processes.*task_processes"
        ):
            session.sql("select sum(v) from pages").collect()


def test_without_processes_a_reader_that_hangs_loses_its_slot_with_the_query(tmp_path: Path) -> None:
    """Nothing can end it there. The worker has one slot, which the next query gets."""
    options = WorkerOptions(1, str(tmp_path), Guard(trust_python=True), release_seconds=0.1)
    address, _ = start_in_process(options)
    with Gate(tmp_path) as gate, sparkfusion.connect(Cluster([address]), config=MANY_TASKS) as session:
        hold = gate.hold()
        session.register_parquet("t", write_t(tmp_path))
        session.register_feed("pages", Page(), schema=PAGE, reader=lambda unit, context: hold())
        hung = session.sql("select sum(v) from pages").stream()
        gate.wait_for_arrivals()
        hung.close()
        assert session.sql("select count(*) as n from (select distinct k from t)").to_pylist() == [{"n": 3}]
    stop_worker(address)
