"""Which versions may work together: the same sparkfusion, DataFusion and Python (major.minor)."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from sparkfusion.config import available_cores


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker tells about itself.

    Attributes:
        version: of sparkfusion. It, `datafusion` and `python` (major.minor) must be the same as the coordinator's.
        slots: how many tasks it runs at once, of all queries together.
        trusts_python: whether it unpickles functions of the user.
    """

    version: str
    datafusion: str
    python: str
    slots: int
    host: str
    trusts_python: bool


@dataclass(frozen=True)
class WorkerStatus:
    """What a worker holds at this moment. After the last query every number is 0."""

    running: int
    queries: int
    files: int
    bytes: int


@cache
def this_version(slots: int | None = None, *, trusts_python: bool = True) -> WorkerInfo:
    """The versions of this process. A worker must have the same ones to be used from here."""
    return WorkerInfo(
        version=_ours(),
        datafusion=version("datafusion"),
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        slots=slots or available_cores(),
        host=platform.node(),
        trusts_python=trusts_python,
    )


def _ours() -> str:
    try:
        return version("sparkfusion")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0+unknown"


def difference(worker: WorkerInfo) -> str | None:
    """Why a worker cannot be used from this process, in words; None if it can."""
    here = this_version()
    pairs = [
        ("sparkfusion", worker.version, here.version),
        ("datafusion", worker.datafusion, here.datafusion),
        ("Python", worker.python, here.python),
    ]
    other = [f"{name} {theirs} instead of {ours}" for name, theirs, ours in pairs if theirs != ours]
    return ", ".join(other) or None
