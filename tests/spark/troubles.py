"""What may happen to a task of Spark, inside of a function of the user."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from datafusion import ScalarUDF, udf

from tests.behaviour.probes import Counter


def troubled(counter: Counter, happen: Callable[[int], None], *, always: bool = False) -> ScalarUDF:
    """bigint → the same bigint. Where the value is 0 trouble happens, in the first attempt or always; counts those."""
    path = str(counter.path)

    def trouble(values: pa.Array) -> pa.Array:
        if 0 in values.to_pylist():
            counter = Counter(Path(path))
            counter.add()
            if always or counter.value == 1:
                happen(counter.value)
        return values

    return udf(trouble, [pa.int64()], pa.int64(), "volatile", "trouble")


def user_mistake(_: int) -> None:
    raise ValueError("the value 0 is not liked here")


def flaky_disk(_: int) -> None:
    raise OSError(5, "IO error: the disk hiccups")


def killed(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
