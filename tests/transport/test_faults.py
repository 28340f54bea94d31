"""Real worker processes that die, hang and come back in the middle of queries: right answers, nothing left behind."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion.errors import ExternalError
from sparkfusion.observe.events import (
    Event,
    JoinDecided,
    KeySetDecided,
    SkewDecided,
    StageFinished,
    TaskFailed,
    TaskFinished,
    TaskRunning,
    TaskStarted,
)
from tests import leaks
from tests.transport.conftest import StartWorker
from tests.transport.tables import QUESTIONS, SHUFFLED, register, write_tables
from tests.worker_processes import COMMAND, IDLE, ROOT, TOKEN, WorkerProcess, url_of, warm_up

PATIENCE = {"sparkfusion.worker_patience_seconds": 2}
OTHERS = [question for question in QUESTIONS if question != "shipping priority"]
LONG = 100_000
LEASE = ("--slots", "2", "--lease-seconds", "5")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tables")
    write_tables(directory)
    return directory


@pytest.fixture(scope="module")
def answers(tables: Path) -> dict[str, list[dict[str, Any]]]:
    with sparkfusion.connect(config={"sparkfusion.enabled": False}) as session:
        register(session, tables)
        return {name: session.sql(sql).to_pylist() for name, sql in QUESTIONS.items()}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[WorkerProcess]]:
    fleet: list[WorkerProcess] = []
    with leaks.known_processes(COMMAND):
        yield fleet
    for worker in fleet:
        worker.stop()


@pytest.fixture
def three(fleet: list[WorkerProcess], tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[WorkerProcess]]:
    """Three workers that are alive; those that earlier tests killed are replaced."""
    alive = [worker for worker in fleet if worker.process.poll() is None]
    for worker in fleet:
        if worker not in alive:
            worker.stop()
    fleet[:] = alive + [WorkerProcess(tmp_path_factory.mktemp("worker"), *LEASE) for _ in range(3 - len(alive))]
    yield list(fleet)
    for worker in fleet:
        worker.process.poll()


@pytest.fixture
def session(three: list[WorkerProcess], tables: Path, request: pytest.FixtureRequest) -> Iterator[sparkfusion.Session]:
    """A parameter sets `sparkfusion.task_cores`."""
    cores = {"sparkfusion.task_cores": getattr(request, "param", 1)}
    with sparkfusion.connect(url_of(three), config={**SHUFFLED, **PATIENCE, **cores}) as session:
        register(session, tables)
        yield session


MOMENTS: dict[str, Callable[[Event], bool]] = {
    "a task runs": lambda event: isinstance(event, TaskStarted) and event.key.task == 2,
    "a task is done": lambda event: isinstance(event, TaskFinished),
    "a stage is done": lambda event: isinstance(event, StageFinished),
    "the second stage begins": lambda event: isinstance(event, TaskStarted) and event.key.stage == 2,
    "the head begins": lambda event: isinstance(event, TaskStarted) and event.key.stage == 0,
}

LATER = ("the second stage begins", "the head begins")


def on_moment(session: sparkfusion.Session, moment: Callable[[Event], bool], act: Callable[[], None]) -> list[Event]:
    """Act once, when it comes; gives the list of all events, which grows."""
    seen: list[Event] = []
    done = threading.Event()

    def hear(event: Event) -> None:
        seen.append(event)
        if moment(event) and not done.is_set():
            done.set()
            act()

    session.subscribe(hear)
    return seen


def until_idle(workers: list[WorkerProcess], seconds: float) -> None:
    """Normally within so many seconds; a busy machine gets more, because the limit only guards against a hang."""
    deadline = time.monotonic() + 10 * seconds
    while (left := [worker.status() for worker in workers]) != [IDLE] * len(workers):
        assert time.monotonic() < deadline, f"left on workers: {left}"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("session", "question", "moment"),
    [
        *((1, "shipping priority", moment) for moment in ("a task runs", "a stage is done")),
        *(
            pytest.param(tasks, "shipping priority", moment, marks=pytest.mark.long)
            for tasks, moment in [*product((1,), ("a task is done", *LATER)), *product((2,), MOMENTS)]
        ),
        *(
            pytest.param(1, other, moment, marks=pytest.mark.long)
            for other, moment in zip(OTHERS, cycle(MOMENTS), strict=False)
        ),
    ],
    indirect=["session"],
)
def test_a_worker_is_killed(
    session: sparkfusion.Session,
    three: list[WorkerProcess],
    answers: dict[str, list[dict[str, Any]]],
    question: str,
    moment: str,
) -> None:
    events = on_moment(session, MOMENTS[moment], lambda: three[0].send(signal.SIGKILL))
    assert session.sql(QUESTIONS[question]).to_pylist() == answers[question]
    assert any(MOMENTS[moment](event) for event in events), "the moment never came"
    until_idle(three[1:], 2)


@pytest.mark.parametrize("moment", ["a task runs", "a stage is done"])
def test_a_worker_is_ended_politely(
    session: sparkfusion.Session, three: list[WorkerProcess], answers: dict[str, list[dict[str, Any]]], moment: str
) -> None:
    on_moment(session, MOMENTS[moment], lambda: three[0].send(signal.SIGTERM))
    assert session.sql(QUESTIONS["shipping priority"]).to_pylist() == answers["shipping priority"]
    assert three[0].process.wait(60) == 0
    until_idle(three[1:], 2)


@pytest.mark.long
def test_a_new_query_leaves_alone_who_waits_for_a_silent_worker(
    three: list[WorkerProcess], tables: Path, answers: dict[str, list[dict[str, Any]]]
) -> None:
    """The new one leaves the worker out after three seconds; the old one has more patience."""
    name = "shipping priority"
    found: list[list[dict[str, Any]]] = []
    with sparkfusion.connect(url_of(three), config={**SHUFFLED, "sparkfusion.worker_patience_seconds": 60}) as session:
        register(session, tables)
        silent = threading.Event()

        def silence() -> None:
            three[0].send(signal.SIGSTOP)
            silent.set()

        on_moment(session, MOMENTS["a task runs"], silence)
        first = threading.Thread(target=lambda: found.append(session.sql(QUESTIONS[name]).to_pylist()))
        try:
            first.start()
            assert silent.wait(30)
            assert session.sql(QUESTIONS[name]).to_pylist() == answers[name]
        finally:
            three[0].send(signal.SIGCONT)
        first.join(60)
    assert found == [answers[name]]
    until_idle(three, 2)


@pytest.mark.parametrize(
    "moment", ["a task is done", *(pytest.param(later, marks=pytest.mark.long) for later in LATER)]
)
def test_a_worker_hangs(
    session: sparkfusion.Session, three: list[WorkerProcess], answers: dict[str, list[dict[str, Any]]], moment: str
) -> None:
    on_moment(session, MOMENTS[moment], lambda: three[0].send(signal.SIGSTOP))
    try:
        assert session.sql(QUESTIONS["shipping priority"]).to_pylist() == answers["shipping priority"]
        until_idle(three[1:], 2)
    finally:
        three[0].send(signal.SIGCONT)
    until_idle(three, 5)


@pytest.mark.parametrize("moment", ["a task runs", *(pytest.param(later, marks=pytest.mark.long) for later in LATER)])
def test_a_silent_worker_costs_seconds_long_before_it_counts_as_lost(
    three: list[WorkerProcess], tables: Path, answers: dict[str, list[dict[str, Any]]], moment: str
) -> None:
    """The patience is two minutes: whoever waited for it would run into the time limit of the test."""
    with sparkfusion.connect(url_of(three), config={**SHUFFLED, "sparkfusion.worker_patience_seconds": 120}) as session:
        register(session, tables)
        events = on_moment(session, MOMENTS[moment], lambda: three[0].send(signal.SIGSTOP))
        try:
            began = time.monotonic()
            assert session.sql(QUESTIONS["shipping priority"]).to_pylist() == answers["shipping priority"]
            assert time.monotonic() - began < 60
            assert any(MOMENTS[moment](event) for event in events), "the moment never came"
            until_idle(three[1:], 2)
        finally:
            three[0].send(signal.SIGCONT)
    until_idle(three, 5)


def test_a_lost_build_side_of_a_broadcast_join_is_made_again(
    session: sparkfusion.Session, three: list[WorkerProcess], answers: dict[str, list[dict[str, Any]]]
) -> None:
    session.config["sparkfusion.adaptive_broadcast_bytes"] = -1
    for threshold in ("hash_join_single_partition_threshold", "hash_join_single_partition_threshold_rows"):
        session.config[f"datafusion.optimizer.{threshold}"] = 0
    events = on_moment(session, lambda event: isinstance(event, JoinDecided), lambda: three[0].send(signal.SIGKILL))
    assert session.sql(QUESTIONS["shipping priority"]).to_pylist() == answers["shipping priority"]
    (first, *_) = [event for event in events if isinstance(event, JoinDecided)]
    assert first.absorbed is not None
    assert max(event.key.attempt for event in events if isinstance(event, TaskFinished)) >= 1


@pytest.mark.long
def test_a_lost_key_set_is_made_again(
    session: sparkfusion.Session, three: list[WorkerProcess], answers: dict[str, list[dict[str, Any]]]
) -> None:
    session.config["sparkfusion.key_set_bytes"] = -1
    events = on_moment(session, lambda event: isinstance(event, KeySetDecided), lambda: three[0].send(signal.SIGKILL))
    assert session.sql(QUESTIONS["shipping priority"]).to_pylist() == answers["shipping priority"]
    assert any(isinstance(event, KeySetDecided) and event.used for event in events)
    assert max(event.key.attempt for event in events if isinstance(event, TaskFinished)) >= 1


@pytest.mark.long
def test_a_lost_part_of_a_split_partition_is_made_again(
    session: sparkfusion.Session, three: list[WorkerProcess], answers: dict[str, list[dict[str, Any]]]
) -> None:
    session.config["sparkfusion.skew_bytes"] = -1
    session.config["sparkfusion.adaptive_broadcast_bytes"] = 0
    for threshold in ("hash_join_single_partition_threshold", "hash_join_single_partition_threshold_rows"):
        session.config[f"datafusion.optimizer.{threshold}"] = 0
    events = on_moment(session, _is_split, lambda: three[0].send(signal.SIGKILL))
    assert session.sql(QUESTIONS["shipping priority"]).to_pylist() == answers["shipping priority"]
    assert any(_is_split(event) for event in events)
    assert max(event.key.attempt for event in events if isinstance(event, TaskFinished)) >= 1


def _is_split(event: Event) -> bool:
    return isinstance(event, SkewDecided) and event.split


@pytest.mark.long
def test_what_was_lost_is_made_again_elsewhere(
    session: sparkfusion.Session, three: list[WorkerProcess], answers: dict[str, list[dict[str, Any]]]
) -> None:
    events = on_moment(session, MOMENTS["a stage is done"], lambda: three[0].send(signal.SIGKILL))
    assert session.sql(QUESTIONS["large orders"]).to_pylist() == answers["large orders"]
    attempts = {event.key.attempt for event in events if isinstance(event, TaskFinished)}
    assert max(attempts) >= 1
    assert all(event.retried for event in events if isinstance(event, TaskFailed))


@pytest.fixture(scope="module")
def long_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for each slot of three workers, with more rows than wait between a worker and a slow reader."""
    directory = tmp_path_factory.mktemp("long")
    for part in range(6):
        rows = pa.table({"part": [part] * LONG, "x": range(LONG), "s": [f"{part}-{x:0800}" for x in range(LONG)]})
        pq.write_table(rows, directory / f"{part}.parquet")
    return directory


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.long)])
def test_rows_that_flow_go_on_where_a_lost_worker_left_off(
    three: list[WorkerProcess], long_rows: Path, how: signal.Signals, tmp_path: Path
) -> None:
    warm_up(three, tmp_path)
    lost = three[:2]
    plain = {"sparkfusion.frame_compression": "none"}  # so that half of a task's 80 MB has to wait for the consumer
    config = {"sparkfusion.bytes_per_partition": 1, "sparkfusion.channel_frames": 1, **plain, **PATIENCE}
    sent = False
    try:
        with sparkfusion.connect(url_of(three), config=config) as session:
            session.register_parquet("t", str(long_rows))
            running = threading.Semaphore(0)
            session.subscribe(lambda event: running.release() if isinstance(event, TaskRunning) else None)
            query = session.sql("select part, x, s from t where x >= 0").stream()
            assert all(running.acquire(timeout=60) for _ in range(6)), "not all tasks run"
            seen: list[tuple[int, int]] = []
            counts: Counter[int] = Counter()
            for batch in query:
                parts = batch.column("part").to_pylist()
                seen += zip(parts, batch.column("x").to_pylist(), strict=True)
                counts.update(parts)
                # of three tasks that cannot have ended, the third worker runs two at most
                if not sent and sum(0 < counts[part] < LONG // 2 for part in range(6)) >= 3:
                    sent = True
                    for worker in lost:
                        worker.send(how)
            attempts = [report.key.attempt for report in query.reports()]
    finally:
        for worker in lost:
            worker.send(signal.SIGCONT)
    assert sent, "no three tasks ran at the same time"
    assert len(seen) == len(set(seen)) == 6 * LONG
    assert any(attempts), "every task had ended before its worker was lost"
    until_idle(three[2:], 2)


@pytest.mark.long
def test_a_worker_that_comes_back_is_used_by_the_next_query(
    session: sparkfusion.Session,
    three: list[WorkerProcess],
    start_worker: StartWorker,
    answers: dict[str, list[dict[str, Any]]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    question = QUESTIONS["shipping priority"]
    caplog.set_level(logging.WARNING, "sparkfusion")
    on_moment(session, MOMENTS["a task is done"], lambda: three[0].send(signal.SIGKILL))
    assert session.sql(question).to_pylist() == answers["shipping priority"]
    assert f"continues without worker {three[0].address}" in caplog.text
    assert session.sql(question).to_pylist() == answers["shipping priority"]
    assert f"a worker is not used: worker {three[0].address}" in caplog.text
    three[0].process.wait()
    back = start_worker(*LEASE, name=three[0].directory.name, port=three[0].port)
    assert "on 2 workers" in session._engine.describe_runner()
    assert session.sql(question).to_pylist() == answers["shipping priority"]
    assert "on 3 workers" in session._engine.describe_runner()
    until_idle([back, *three[1:]], 2)
    assert [path for path in back.directory.iterdir() if path.name.startswith("sparkfusion-")] == []


def test_no_worker_is_left(session: sparkfusion.Session, three: list[WorkerProcess]) -> None:
    def kill_all() -> None:
        for worker in three:
            worker.send(signal.SIGKILL)

    on_moment(session, MOMENTS["a task is done"], kill_all)
    with pytest.raises(ExternalError, match="worker"):
        session.sql(QUESTIONS["shipping priority"]).to_pylist()


COORDINATOR = """
import sys, threading
import sparkfusion
from sparkfusion.observe.events import TaskStarted
sys.path.insert(0, sys.argv[3])
from pathlib import Path
from tests.transport.tables import SHUFFLED, register
session = sparkfusion.connect(sys.argv[1], config={**SHUFFLED, "sparkfusion.store_memory_bytes": 0})
register(session, Path(sys.argv[2]))
stream = session.sql("select a.quantity from lines a join lines b on a.flag = b.flag and a.order_key = b.order_key "
                     "union all select quantity from lines").stream()
next(iter(stream))
print("running", flush=True)
threading.Event().wait()
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.long)], ids=["killed", "hangs"]
)
def test_a_coordinator_vanishes(three: list[WorkerProcess], tables: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-c", COORDINATOR, url_of(three), str(tables), str(ROOT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as coordinator:
        assert coordinator.stdout is not None
        try:
            assert coordinator.stdout.readline() == "running\n"
            assert any(worker.status().queries for worker in three)
            coordinator.send_signal(how)
            until_idle(three, 2 if how is signal.SIGKILL else 8)
        finally:
            coordinator.kill()


ENDS: dict[str, Callable[[sparkfusion.Session], None]] = {}


def ending(function: Callable[[sparkfusion.Session], None]) -> Callable[[sparkfusion.Session], None]:
    ENDS[function.__name__.replace("_", " ")] = function
    return function


@ending
def it_succeeds(session: sparkfusion.Session) -> None:
    assert session.sql("select count(*) as n from lines group by flag").to_pylist()


@ending
def it_fails(session: sparkfusion.Session) -> None:
    with pytest.raises(sparkfusion.UserError, match="Divide by zero"):
        session.sql("select quantity / (order_key - order_key) from lines order by 1").to_pylist()


@ending
def it_is_cancelled(session: sparkfusion.Session) -> None:
    query = session.sql("select a.price from lines a join lines b on a.flag = b.flag").stream()
    query.cancel()
    with pytest.raises(sparkfusion.QueryCancelledError):
        query.read_all()


@ending
def its_stream_is_abandoned(session: sparkfusion.Session) -> None:
    stream = session.sql("select a.price from lines a join lines b on a.flag = b.flag").stream()
    next(iter(stream))
    stream.close()


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_nothing_is_left_when(
    session: sparkfusion.Session, three: list[WorkerProcess], end: Callable[[sparkfusion.Session], None]
) -> None:
    end(session)
    until_idle(three, 2)


def test_a_token_is_always_asked_for(three: list[WorkerProcess]) -> None:
    address = three[0].address
    with pytest.raises(sparkfusion.UserError, match="refused the token"):
        sparkfusion.connect(f"{address}?token={TOKEN}x")
    with pytest.raises(sparkfusion.UserError, match="requires a token, and none was given"):
        sparkfusion.connect(address)
