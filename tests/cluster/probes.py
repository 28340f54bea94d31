"""Functions for queries that note who calls them and, once, do harm. Run inside tasks, on executors."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import datafusion
import psutil
import pyarrow as pa
from pyspark import TaskContext

from tests.cluster.experiment import Call, Fault

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
LONGEST_WAIT = 150.0
"""Seconds after which a waiting task goes on by itself. Only paid by a test that fails."""


@dataclass(frozen=True)
class Notebook:
    """A directory that tasks and the query's process share; one for each query."""

    home: str

    def write(self, call: Call) -> None:
        """Append a call. Short enough for one write, so tasks of several processes do not mix their lines."""
        fd = os.open(f"{self.home}/calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, json.dumps(asdict(call)).encode() + b"\n")
        finally:
            os.close(fd)

    def calls(self) -> list[Call]:
        path = Path(self.home, "calls")
        return [Call(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []

    def attempts(self, function: str) -> set[int]:
        return {call.attempt for call in self.calls() if call.function == function}

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other tasks of this query out, in whatever process. The lock ends with a process that is killed."""
        fd = os.open(f"{self.home}/lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def claim(self, function: str) -> bool:
        """Whether the caller is the first."""
        try:
            os.close(os.open(f"{self.home}/{function}.claimed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def release(self) -> None:
        """Let every task that waits go on."""
        Path(self.home, "released").touch()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Return when the condition holds or everyone is released, also by removing the directory."""
        deadline = time.monotonic() + LONGEST_WAIT
        released, home = Path(self.home, "released"), Path(self.home)
        while home.exists() and not released.exists() and not condition() and time.monotonic() < deadline:
            time.sleep(0.02)


def probe(name: str, fault: Fault, notebook: Notebook) -> datafusion.ScalarUDF:
    """The function `name` of an experiment. Declared to be repeatable: a stage that calls it may be run again."""

    attempt: list[int] = []  # the function comes to each attempt as a copy of its own, without what others put here

    def function(values: pa.Array) -> pa.Array:
        if not attempt:
            attempt.append(attempt_id())
        if len(values):
            _note(name, fault, notebook, attempt[0], values[0].as_py())
        return values

    return datafusion.udf(function, [pa.int64()], pa.int64(), "stable", name)


def _note(name: str, fault: Fault, notebook: Notebook, attempt: int, first: int) -> None:
    with notebook.alone():  # of two tasks that come at the same moment, one is the second
        before = sum((call.function, call.attempt) == (name, attempt) for call in notebook.calls())
        due = len(notebook.attempts(name) | {attempt}) >= fault.on_task and before + 1 >= fault.on_call
        faulty = due and fault.kind != "none" and (fault.kind == "held" or notebook.claim(name))
        call = Call(name, attempt, executor_pid(), first, faulty, reserved_cpus(), time.time())
        notebook.write(call)
    if faulty:
        _HARM[fault.kind](notebook, call)


def attempt_id() -> int:
    """Spark's number of the attempt; on a resident worker, where tasks are not Spark's, a random one."""
    context = TaskContext.get()
    return int(context.taskAttemptId()) if context is not None else random.getrandbits(62)


def reserved_cpus() -> int:
    context = TaskContext.get()
    return context.cpus() if context is not None else 0


def executor_pid() -> int:
    """The JVM above this process: a worker is a child of Spark's daemon, which is a child of the executor."""
    for process in psutil.Process().parents():
        with suppress(psutil.ZombieProcess):  # it was killed a moment ago
            if EXECUTOR in process.cmdline():
                return process.pid
    return -1


def kill_executor(pid: int) -> None:
    """End an executor as a lost machine would: at once, without a word."""
    if EXECUTOR not in psutil.Process(pid).cmdline():
        raise AssertionError(f"process {pid} is no executor")
    os.kill(pid, signal.SIGKILL)


def _io_error(_: Notebook, __: Call) -> None:
    raise OSError(5, "IO error: the disk hiccups")


def _worker_killed(_: Notebook, __: Call) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _executor_killed(_: Notebook, call: Call) -> None:
    """The task itself goes on, and may still write: nobody tells it."""
    kill_executor(call.executor)


def _slow(notebook: Notebook, _: Call) -> None:
    notebook.wait_for(lambda: False)


def _raced(notebook: Notebook, mine: Call) -> None:
    def other_is_here() -> bool:
        calls = [call for call in notebook.calls() if (call.function, call.first) == (mine.function, mine.first)]
        return any(call.attempt != mine.attempt for call in calls)

    notebook.wait_for(other_is_here)


_HARM: dict[str, Callable[[Notebook, Call], None]] = {
    "io_error": _io_error,
    "worker_killed": _worker_killed,
    "executor_killed": _executor_killed,
    "slow": _slow,
    "raced": _raced,
    "held": _slow,
}
