"""A transport of somebody else's: Flight under another scheme, with every call written down.

Tests install a copy of this module; the calls are in the file `calls` beside that copy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sparkfusion.errors import SparkfusionError
from sparkfusion.ids import QueryId, TaskKey
from sparkfusion.transport.base import Access, Lease, TaskEnds, TaskOrder, WorkerChannel
from sparkfusion.transport.flight import Flight
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.server.fetch import FileChunk
from sparkfusion.worker.server.version import WorkerInfo, WorkerStatus
from sparkfusion.worker.task import TaskReport

CALLS = Path(__file__).with_name("calls")


class CountedFlight:
    """The transport of `counted://host:port`."""

    def connect(self, address: str, access: Access) -> WorkerChannel:
        return CountedChannel(address, Flight().connect(address.replace("counted://", "flight://", 1), access))


class CountedChannel:
    def __init__(self, address: str, channel: WorkerChannel) -> None:
        self._address = address
        self._channel = channel

    @property
    def address(self) -> str:
        return self._address

    def info(self) -> WorkerInfo:
        self._note("info")
        return self._channel.info()

    def status(self) -> WorkerStatus:
        self._note("status")
        return self._channel.status()

    def reaches(self, directory: str, name: str, content: str) -> bool:
        self._note("reaches")
        return self._channel.reaches(directory, name, content)

    def hold(
        self,
        query: QueryId,
        secret: str,
        patience: float,
        on_lost: Callable[[SparkfusionError], None],
        on_late: Callable[[bool], None] = lambda late: None,
    ) -> Lease:
        self._note("hold")
        return self._channel.hold(query, secret, patience, on_lost, on_late)

    def run(self, order: TaskOrder, ends: TaskEnds, cancel: CancelToken) -> TaskReport:
        self._note("run")
        return self._channel.run(order, ends, cancel)

    def discard(self, key: TaskKey) -> None:
        self._note("discard")
        self._channel.discard(key)

    def read(
        self, query: QueryId, secret: str, names: Sequence[str], cancel: CancelToken, patience: float
    ) -> Iterator[FileChunk]:
        self._note("read")
        return self._channel.read(query, secret, names, cancel, patience)

    def close(self) -> None:
        self._note("close")
        self._channel.close()

    def _note(self, call: str) -> None:
        with CALLS.open("a") as calls:
            calls.write(f"{os.getpid()} {call} {self._address}\n")
