"""Ctrl-C and `cancel()` stop a query promptly and leave nothing; the session goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkfusion import QueryCancelledError, Session
from sparkfusion.observe.events import QueryFailed
from tests.behaviour.parts import assert_usable, record, write_parts
from tests.behaviour.probes import PATIENCE, PROMPT, Gate, holding_udf
from tests.conftest import Connect
from tests.runners import some_first

pytestmark = [
    pytest.mark.any_width,
    pytest.mark.sample("local", "flight", "spark-local"),  # tasks are stopped in different ways
]

HELD = {
    "streamed to the reader": "select hang(v) as v from t",
    "in a shuffle": "select k, sum(hang(v)) as s from t group by k",
    "in the head": "select hang(s) as s from (select sum(v) as s from t where v >= 0)",
}
FIRST = ("streamed to the reader", "in a shuffle")


@pytest.mark.parametrize("query", some_first(HELD, FIRST))
def test_cancel_from_another_thread(session: Session, tmp_path: Path, query: str) -> None:
    events = record(session)
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang"))
        running = session.sql(query).stream()

        def cancel() -> None:
            gate.wait_for_arrivals()
            running.cancel()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        with pytest.raises(QueryCancelledError, match="cancelled"):
            list(running)
        canceller.join()
    assert [event.cancelled for event in events if isinstance(event, QueryFailed)] == [True]
    assert_usable(session)


@pytest.mark.parametrize("query", some_first(HELD, FIRST))
def test_interrupt_while_waiting_for_rows(session: Session, tmp_path: Path, query: str) -> None:
    """The signal comes while the main thread waits inside `collect`, as it does from a terminal."""
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang"))
        stopped = _interrupt_at(gate)
        with pytest.raises(KeyboardInterrupt):
            session.sql(query).collect()
        stopped()
    assert_usable(session)


def test_interrupt_of_a_query_that_is_not_distributed(connect: Connect, tmp_path: Path) -> None:
    session = connect({"sparkfusion.enabled": False})
    session.register_parquet("t", write_parts(tmp_path))
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang", where=lambda v: v == 0))
        stopped = _interrupt_at(gate)
        with pytest.raises(KeyboardInterrupt):
            session.sql("select k, sum(hang(v)) as s from t group by k").collect()
        stopped()
    assert session.sql("select count(*) as n from t").to_pylist() == [{"n": 4000}]


def test_cancel_of_a_query_that_is_not_distributed(connect: Connect, tmp_path: Path) -> None:
    """Nothing is between the reader and DataFusion there, so the cancel has to reach a reader that waits."""
    session = connect({"sparkfusion.enabled": False})
    session.register_parquet("t", write_parts(tmp_path))
    outcome: list[BaseException | int] = []

    def read() -> None:
        try:
            outcome.append(sum(batch.num_rows for batch in running))
        except BaseException as error:
            outcome.append(error)

    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang", where=lambda v: v == 0))
        running = session.sql("select k, sum(hang(v)) as s from t group by k").stream()
        reader = threading.Thread(target=read)
        reader.start()
        gate.wait_for_arrivals()
        running.cancel()
        reader.join(PROMPT)
        ended = not reader.is_alive()
    reader.join()
    assert ended, "the reader still waited"
    assert isinstance(outcome[0], QueryCancelledError)


# ---- whole scripts, with queries that keep the processor busy

SCRIPT = """
import faulthandler
import os
import signal
import sys
import sparkfusion
from sparkfusion.observe.events import TaskStarted

faulthandler.register(signal.SIGUSR1)
settings = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": 4}
session = sparkfusion.connect(config=settings | {"sparkfusion.task_cores": int(os.environ["TASK_CORES"])})
session.register_parquet("t", sys.argv[1])
say = lambda text: os.write(1, (text + "\\n").encode())  # whole lines, whichever thread says them
session.subscribe(lambda event: say("running") if isinstance(event, TaskStarted) else None)
try:
    rows = session.sql(sys.argv[2]).collect()
    say(f"finished {rows.num_rows}")
except KeyboardInterrupt:
    if sys.argv[3:] != ["go on"]:
        raise
    say(f"after {session.sql('select k, count(*) from t group by k').collect().num_rows}")
"""

BUSY = {
    "hash join": "select sum(a.v * b.v + c.v) as s from t a join t b on a.k = b.k join t c on b.k = c.k"
    " where a.v + b.v <> c.v",
    "cross join": "select sum(a.v * b.v % 7 + c.v) as s from t a, t b, t c",
    "cross join into a shuffle": "select a.k, count(*) as n from t a, t b, t c where a.v + b.v <> c.v group by a.k",
}


@pytest.mark.parametrize("cores", [0, 1], ids=["one task", "split"])
@pytest.mark.parametrize("query", some_first(BUSY, ["hash join"]))
def test_ctrl_c_ends_a_script_and_leaves_no_files(tmp_path: Path, query: str, cores: int) -> None:
    process, scratch = _start(tmp_path, query, cores=cores)
    out, err, seconds = _interrupt(process)
    assert seconds < PROMPT, err
    assert process.returncode != 0
    assert "KeyboardInterrupt" in err
    assert "finished" not in out
    assert list(scratch.iterdir()) == []
    assert list(Path("/dev/shm").glob(f"sparkfusion-{process.pid}-*")) == []


@pytest.mark.parametrize("cores", [0, 1], ids=["one task", "split"])
@pytest.mark.parametrize("query", some_first(BUSY, ["hash join"]))
def test_after_ctrl_c_the_next_query_is_not_held_up(tmp_path: Path, query: str, cores: int) -> None:
    """What the stopped query was computing really ends: it must not keep the processor from the next one."""
    process, _ = _start(tmp_path, query, "go on", cores=cores)
    out, err, seconds = _interrupt(process)
    assert "after 7" in out
    assert seconds < PROMPT, err


def test_ctrl_c_gets_through_when_polars_is_imported(tmp_path: Path) -> None:
    """polars installs a signal handler that restarts system calls: waiting for a lock without a timeout goes on."""
    process, scratch = _start(tmp_path, BUSY["hash join"], imports="import polars")
    _, err, seconds = _interrupt(process)
    assert seconds < PROMPT, err
    assert "KeyboardInterrupt" in err
    assert list(scratch.iterdir()) == []


def test_files_of_a_killed_process_are_removed_by_the_next_one(tmp_path: Path) -> None:
    process, scratch = _start(tmp_path, BUSY["hash join"])
    process.kill()
    process.communicate()
    after, _ = _start(tmp_path, "select k, count(*) from t group by k")
    after.communicate(timeout=PATIENCE)
    assert list(scratch.iterdir()) == []
    assert list(Path("/dev/shm").glob(f"sparkfusion-{process.pid}-*")) == []


def _start(
    directory: Path, query: str, *arguments: str, imports: str = "", cores: int = 1
) -> tuple[subprocess.Popen[str], Path]:
    """A script that has its query running, and the directory for its temporary files."""
    data, scratch = directory / "parts", directory / "tmp"
    if not data.exists():
        write_parts(directory)
        scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", imports + SCRIPT, str(data), query, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch), "TASK_CORES": str(cores)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    return process, scratch


def _interrupt(process: subprocess.Popen[str]) -> tuple[str, str, float]:
    """What the script wrote, and how long it took. A script that is late says where its threads are."""
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=PROMPT / 2)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGUSR1)
        try:
            out, err = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
    return out, err, time.monotonic() - begun


def _interrupt_at(gate: Gate) -> Callable[[], None]:
    """Send the main thread a Ctrl-C when a task is at the gate. The result checks that it then stopped promptly."""
    main = threading.main_thread().ident
    assert main is not None
    over = threading.Event()
    prompt: list[bool] = []

    def interrupt() -> None:
        gate.wait_for_arrivals()
        signal.pthread_kill(main, signal.SIGINT)
        prompt.append(over.wait(PROMPT))
        gate.open()

    thread = threading.Thread(target=interrupt)
    thread.start()

    def stopped() -> None:
        over.set()
        thread.join()
        assert prompt == [True]

    return stopped
