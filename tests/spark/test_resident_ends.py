"""Programs with resident workers that end in any way: with their driver, everything that it started ends.

Each test starts a Spark of its own, in a process of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.behaviour.parts import write_parts
from tests.behaviour.probes import until
from tests.leaks import TASK_PROCESS
from tests.spark_session import FAST_START

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]

PROGRAM = """
import logging, sys, time, warnings
warnings.simplefilter("ignore")
logging.basicConfig(level=logging.WARNING, stream=sys.stdout, format="%(message)s")
import pyarrow as pa
from datafusion import udf
import sparkfusion
from sparkfusion.runner.spark.launch import start_local

master, directory, local, java, what = sys.argv[1:]
spark = start_local(master, {"spark.driver.extraJavaOptions": java, "spark.local.dir": local})
config = {
    "sparkfusion.spark_mode": "resident",
    "sparkfusion.bytes_per_partition": 1,
    "sparkfusion.task_cores": 1,
    "sparkfusion.small_stage_bytes": 0,
    "datafusion.execution.target_partitions": 2,
}
session = sparkfusion.connect(spark, config=config)
session.register_parquet("t", directory)
grouped = "select k, count(*) as n from t group by k"
print(session.sql(grouped).collect().num_rows, flush=True)
print(session.sql(f"explain {grouped}").collect()["plan"].to_pylist()[-1].splitlines()[0], flush=True)
sys.stdin.readline()
if what == "hold":

    def hold(values):
        time.sleep(300)
        return values

    # rows of the first stage are in files of the worker when the second one hangs
    session.register_udf(udf(hold, [pa.int64()], pa.int64(), "volatile", "hold"))
    print("holding", flush=True)
    session.sql(f"select hold(n) as n from ({grouped})").collect()
"""


class Program:
    """The program in its process, and what was below it when it was asked last."""

    def __init__(self, directory: Path, master: str, what: str) -> None:
        parts, self.local, temporary = write_parts(directory), directory / "local", directory / "tmp"
        for made in (self.local, temporary):
            made.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, master, str(parts), str(self.local), FAST_START, what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        self._temporary = temporary
        self.below: list[psutil.Process] = []

    def line(self, holding: str) -> str:
        """The next line that holds these words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if holding in line:
                return line.strip()
        raise AssertionError(f"the program ended and has not said {holding!r}")

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def look_below(self) -> list[psutil.Process]:
        """The processes below it, and those among them that run tasks."""
        self.below = psutil.Process(self.process.pid).children(recursive=True)
        return [each for each in self.below if _lives(each) and TASK_PROCESS in " ".join(each.cmdline())]

    def assert_everything_ends(self, workers: set[int]) -> None:
        until(lambda: not any(_lives(each) for each in self.below), "every process below it has ended")
        frames = [path for pid in workers for path in Path("/dev/shm").glob(f"sparkfusion-{pid}-*")]
        assert frames == []
        assert list(self.local.glob("**/sparkfusion-*")) == []
        assert list(self._temporary.glob("sparkfusion-*/**/*.arrow")) == []

    def close(self) -> None:
        for each in [*self.below, psutil.Process(self.process.pid) if self.process.poll() is None else None]:
            if each is not None and _lives(each):
                each.kill()
        self.process.communicate()


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path, *request.param)
    yield made
    made.close()


HOLDS = pytest.mark.parametrize("program", [("local[2]", "hold")], indirect=True, ids=["local[2]"])
ENDS = pytest.mark.parametrize("program", [("local[2]", "end")], indirect=True, ids=["local[2]"])
ALONE = pytest.mark.parametrize("program", [("local[1]", "end")], indirect=True, ids=["local[1]"])


def wait_until_it_holds(program: Program) -> set[int]:
    """The workers of a program whose query hangs."""
    program.line("on 1 resident worker with 2 slots")
    program.go_on()
    program.line("holding")
    until(lambda: _has_frames(program), "the first stage has written its frames")
    return {each.ppid() for each in program.look_below()}


def _has_frames(program: Program) -> bool:
    workers = {each.ppid() for each in program.look_below()}
    return any(True for pid in workers for _ in Path("/dev/shm").glob(f"sparkfusion-{pid}-*/**/*.arrow"))


@HOLDS
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_driver_that_is_killed_takes_everything_with_it(program: Program, number: signal.Signals) -> None:
    workers = wait_until_it_holds(program)
    program.process.send_signal(number)
    program.process.wait(60)
    program.assert_everything_ends(workers)


@ENDS
def test_a_program_that_forgets_to_close_ends_at_once(program: Program) -> None:
    program.line("on 1 resident worker with 2 slots")
    workers = {each.ppid() for each in program.look_below()}
    assert workers
    program.go_on()
    assert program.process.wait(60) == 0
    program.assert_everything_ends(workers)


@ALONE
def test_a_local_master_of_one_core_runs_queries_as_jobs(program: Program) -> None:
    program.line(
        "queries run as Spark jobs, although sparkfusion.spark_mode is resident: an executor runs one task at once"
    )
    assert program.line("7") == "7"
    program.line("as Spark jobs because an executor runs one task at once")
    program.go_on()
    assert program.process.wait(60) == 0
