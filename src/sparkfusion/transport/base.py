"""The contract between a coordinator and a worker.

A coordinator holds a query on a worker (`hold`), runs tasks of it there (`run`), and releases it (`Lease.close`). The
frames that tasks wrote stay on the worker, where the coordinator and other workers read them (`read`), until the query
is released.

All arguments and results are data, in every transport: a task is decoded from bytes even if its worker is a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sparkfusion.errors import LostInputError, SparkfusionError
from sparkfusion.ids import QueryId, TaskKey
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.server.fetch import FileChunk, FrameSource
from sparkfusion.worker.server.version import WorkerInfo, WorkerStatus
from sparkfusion.worker.task import TaskOrder, TaskReport

__all__ = [  # what a transport of somebody else needs
    "Access",
    "CancelToken",
    "FileChunk",
    "FrameSource",
    "Lease",
    "LostInputError",
    "TaskEnds",
    "TaskOrder",
    "TaskReport",
    "Transport",
    "WorkerChannel",
    "WorkerInfo",
    "WorkerStatus",
]


OnLost = Callable[[SparkfusionError], None]
OnLate = Callable[[bool], None]


def ignore_late(late: bool) -> None:
    del late


def worker_name(address: str) -> str:
    """How messages name a worker. A worker of the local runner has no address."""
    return f"worker {address}" if address else "the worker in this process"


class Lease(Protocol):
    """A query that a worker holds, as long as the coordinator sends heartbeats. Any thread may call any method."""

    def close(self) -> None:
        """Release the query: its tasks end, its files are removed. Idempotent, never raises, does not wait long."""
        ...

    def others(self) -> int:
        """How many tasks of other queries run and wait on the worker, by its last heartbeat."""
        ...


class WorkerChannel(FrameSource, Protocol):
    """A coordinator's connection to one worker. Any thread may call any method, for any number of queries at once.

    A call that the worker cannot answer raises an `ExternalError`. Nothing is retried below this contract.
    """

    @property
    def address(self) -> str: ...

    def info(self) -> WorkerInfo:
        """Ask the worker for its version and slots; returns or raises within a few seconds."""
        ...

    def status(self) -> WorkerStatus: ...

    def reaches(self, directory: str, name: str, content: str) -> bool:
        """Whether the worker sees this file in that directory, and may write there."""
        ...

    def hold(
        self, query: QueryId, secret: str, patience: float, on_lost: OnLost, on_late: OnLate = ignore_late
    ) -> Lease:
        """Let the worker hold a query. Needed before `run` and `read`.

        Args:
            secret: what other workers show to `read` frames of this query; it permits nothing else.
            patience: seconds of silence after which the worker counts as lost.
            on_lost: called once, from a thread of the channel, if the worker dies, hangs or has ended the query. Calls
                of `run` on a worker that hangs have to be cancelled then.
            on_late: called with True, from such a thread, if the worker's heartbeat is late, long before it counts as
                lost; with False when it comes again.
        """
        ...

    def run(self, order: TaskOrder, ends: TaskEnds, cancel: CancelToken) -> TaskReport:
        """Run a task to its end, in the calling thread, which may wait long. Errors keep the worker's message and kind.

        Files of the report have names instead of paths. A cancelled call returns promptly with a `QueryCancelledError`;
        the files of the attempt are removed at once, at the latest with the query. Each call runs the task once. After
        a lost connection the task may have run to its end, and its output is never read.
        """
        ...

    def discard(self, key: TaskKey) -> None:
        """Remove what an attempt wrote. Idempotent."""
        ...


class Transport(Protocol):
    """How workers with one kind of address are reached. Found by the scheme of the address, see `schemes`."""

    def connect(self, address: str, access: Access) -> WorkerChannel:
        """A channel. Nothing need be sent before its first use."""
        ...


@dataclass(frozen=True)
class Access:
    """What a coordinator needs to use workers. Paths are of PEM files.

    Attributes:
        token: what every worker asks for; empty between workers, which show a query's secret instead.
        ca: who signed the workers' certificates; empty for the authorities that the system trusts.
        certificate, key: what we show to workers that ask for a certificate.
    """

    token: str = field(default="", repr=False)
    ca: str = ""
    certificate: str = ""
    key: str = ""
