"""Looking into running tasks from a test, and holding them, without sleeping.

Everything goes through files and named pipes, so a probe works wherever the task runs on this machine: in a thread or
in another process. A probe travels inside a UDF as its path.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import datafusion
import pyarrow as pa

PATIENCE = 60.0
"""Seconds until a wait gives up. Only paid by a test that fails."""

PROMPT = 20.0
"""Seconds in which stopping counts as prompt on a busy machine. What it is measured against would take for ever."""


def until(condition: Callable[[], bool], what: str = "what the test waits for") -> None:
    """Return when the condition holds; fail if it does not in a long while."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE} s"
        time.sleep(0.01)


@dataclass(frozen=True)
class Counter:
    """Counts from anywhere: every count is one byte at the end of a file."""

    path: Path

    def add(self, number: int = 1) -> None:
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(fd, b"." * number)
        finally:
            os.close(fd)

    @property
    def value(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0


class Gate:
    """Tasks wait at a named pipe until the test opens it; the test waits until a task has arrived.

    Leaving the `with` opens the gate, so that a failing test does not leave its tasks behind.
    """

    def __init__(self, directory: Path, name: str = "gate") -> None:
        self._door = directory / f"{name}.door"
        self._bell = directory / f"{name}.bell"
        os.mkfifo(self._door)
        os.mkfifo(self._bell)
        self._bell_fd = os.open(self._bell, os.O_RDWR | os.O_NONBLOCK)
        self._door_fd: int | None = None

    def __enter__(self) -> Gate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open()
        os.close(self._bell_fd)

    def open(self) -> None:
        """Let everyone through, now and later. The door stays open: it is closed with the process."""
        if self._door_fd is None:
            self._door_fd = os.open(self._door, os.O_RDWR)

    def wait_for_arrivals(self, number: int = 1) -> None:
        """Return when so many tasks more are at the gate."""
        deadline = time.monotonic() + PATIENCE
        for _ in range(number):
            ready, _, _ = select.select([self._bell_fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"nobody came to the gate within {PATIENCE} s"
            os.read(self._bell_fd, 1)

    def nobody_arrived(self) -> bool:
        return not select.select([self._bell_fd], [], [], 0)[0]

    def hold(self) -> Callable[[], None]:
        """What a task calls: ring the bell, wait at the door. Holds only paths, so it can be pickled."""
        return _Hold(str(self._door), str(self._bell))


@dataclass(frozen=True)
class _Hold:
    door: str
    bell: str

    def __call__(self) -> None:
        fd = os.open(self.bell, os.O_RDWR)
        os.write(fd, b"!")
        os.close(fd)
        with suppress(FileNotFoundError):  # the test is over and its directory gone
            os.close(os.open(self.door, os.O_RDONLY))  # waits until the test has the other end


def holding_udf(gate: Gate, name: str, *, where: Callable[[int], bool] = lambda _: True) -> datafusion.ScalarUDF:
    """bigint → the same bigint; a batch with a value for which `where` holds waits at the gate first."""
    hold = gate.hold()

    def wait(values: pa.Array) -> pa.Array:
        if any(where(value) for value in values.to_pylist()):
            hold()
        return values

    return datafusion.udf(wait, [pa.int64()], pa.int64(), "volatile", name)


def counting_udf(counter: Counter, name: str) -> datafusion.ScalarUDF:
    """bigint → the same bigint; counts rows."""
    path = str(counter.path)

    def count(values: pa.Array) -> pa.Array:
        Counter(Path(path)).add(len(values))
        return values

    return datafusion.udf(count, [pa.int64()], pa.int64(), "volatile", name)
