"""The contract between a coordinator and a worker: what really passes between them, and nothing else.

A coordinator holds a query on a worker (`hold`), runs tasks of it there (`run`), and lets go (`Lease.close`). What the
tasks wrote stays on the worker, where the coordinator and other workers read it (`read`), until the query is let go.

Everything that passes is data, in every transport: a task is decoded from bytes also when its worker is a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sparkfusion.errors import LostInputError, SparkfusionError
from sparkfusion.ids import QueryId, TaskKey
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.server.fetch import FramePeer, Piece
from sparkfusion.worker.server.version import WorkerInfo, WorkerStatus
from sparkfusion.worker.task import TaskOrder, TaskReport

__all__ = [  # what whoever writes a transport needs
    "Access",
    "CancelToken",
    "FramePeer",
    "Lease",
    "LostInputError",
    "Piece",
    "TaskEnds",
    "TaskOrder",
    "TaskReport",
    "Transport",
    "WorkerChannel",
    "WorkerInfo",
    "WorkerStatus",
]


class Lease(Protocol):
    """A query that a worker holds, for as long as it hears from the coordinator. Any thread may call anything."""

    def close(self) -> None:
        """Let go: tasks end, everything is removed, then this returns. Idempotent, never raises, does not wait long."""
        ...

    def others(self) -> int:
        """How many tasks of other queries run and wait on the worker, as it said last."""
        ...


class WorkerChannel(FramePeer, Protocol):
    """A coordinator's way to one worker. Any thread may call anything, any number of queries at once.

    A call that the worker cannot answer raises an `ExternalError`; nothing is retried below this contract.
    """

    @property
    def address(self) -> str: ...

    def info(self) -> WorkerInfo:
        """Ask who is there; returns or raises within a few seconds."""
        ...

    def status(self) -> WorkerStatus: ...

    def reaches(self, directory: str, name: str, content: str) -> bool:
        """Whether the worker sees this file in that directory, and may write there."""
        ...

    def hold(
        self,
        query: QueryId,
        secret: str,
        patience: float,
        on_lost: Callable[[SparkfusionError], None],
        on_late: Callable[[bool], None] = lambda late: None,
    ) -> Lease:
        """Have the worker hold a query. Needed before `run` and `read`.

        Args:
            secret: what others have to show to `read` frames of this query; nothing else can be done with it.
            patience: seconds of silence after which the worker counts as lost.
            on_lost: called once, from a thread of the channel, if the worker dies, hangs or has ended the query.
                Calls of `run` on a worker that hangs have to be cancelled then.
            on_late: called with True, from such a thread, when the worker is late with its word, long before it counts
                as lost; with False when it is heard again.
        """
        ...

    def run(self, order: TaskOrder, ends: TaskEnds, cancel: CancelToken) -> TaskReport:
        """Run a task to its end; in the calling thread, which may wait long. Errors have the worker's words and kind.

        Files of the report have names instead of paths. Cancelling returns promptly with a `QueryCancelledError`; what
        the attempt made goes at once, at the latest with the query. A task is run once for each call: after a lost
        connection it may have run to its end, and nobody will read what it wrote.
        """
        ...

    def discard(self, key: TaskKey) -> None:
        """Remove what an attempt wrote. Idempotent."""
        ...


class Transport(Protocol):
    """How workers of one kind of address are reached. Found by the scheme of the address, see `schemes`."""

    def connect(self, address: str, access: Access) -> WorkerChannel:
        """A channel; nothing need be sent before its first use."""
        ...


@dataclass(frozen=True)
class Access:
    """What opens the door to workers. Paths are of PEM files.

    Attributes:
        token: what every worker asks for; empty between workers, which show a query's secret instead.
        ca: whom to trust when a worker shows its certificate; empty for those that the system trusts.
        certificate, key: what we show, where workers ask for it.
    """

    token: str = field(default="", repr=False)
    ca: str = ""
    certificate: str = ""
    key: str = ""
