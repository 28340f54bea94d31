"""What a worker tells about itself, and whether it can be used from this process."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache

from sparkfusion.config import available_cores
from sparkfusion.versions import describe_environment, find_misfits

_UNKNOWN = "of an unknown version"


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker reports about itself.

    Attributes:
        version: of sparkfusion. It and the versions of the packages must fit the coordinator's (see `versions.py`).
        slots: how many tasks it runs at once, of all queries together.
        trusts_python: whether it unpickles functions of the user.
        pyarrow, protobuf, cloudpickle: None if an older worker does not tell them.
    """

    version: str
    datafusion: str
    python: str
    slots: int
    host: str
    trusts_python: bool
    pyarrow: str | None = None
    protobuf: str | None = None
    cloudpickle: str | None = None


@dataclass(frozen=True)
class WorkerStatus:
    """What a worker holds at this moment. After the last query every number is 0."""

    running: int
    queries: int
    files: int
    bytes: int


@cache
def this_version(slots: int | None = None, *, trusts_python: bool = True) -> WorkerInfo:
    """The versions of this process. A worker's must fit them to be used from here."""
    own = dict(describe_environment())
    version = own.pop("sparkfusion")
    return WorkerInfo(version=version, slots=slots or available_cores(), trusts_python=trusts_python, **own)


def difference(worker: WorkerInfo) -> str | None:
    """Why a worker cannot be used from this process, in words; None if it can."""
    here = describe_environment()
    told = {**asdict(worker), "sparkfusion": worker.version}
    wrong = find_misfits(here, {package: told[package] or _UNKNOWN for package in here})
    return ", ".join(f"{it.package} {it.there} instead of {it.here}" for it in wrong) or None
