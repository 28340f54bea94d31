"""Workers that are threads of this process. Tasks still travel as bytes: isolation is the point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from sparkfusion.errors import ExternalError, SparkfusionError, UserError
from sparkfusion.ids import QueryId, TaskKey
from sparkfusion.transport.base import Access, Lease
from sparkfusion.transport.codec import order_of, pack_order
from sparkfusion.transport.message import unpack
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.server.fetch import Piece
from sparkfusion.worker.server.host import WorkerHost
from sparkfusion.worker.server.rewrites import NamedRewrite
from sparkfusion.worker.server.version import WorkerInfo, WorkerStatus
from sparkfusion.worker.server.worker_options import WorkerOptions
from sparkfusion.worker.task import TaskOrder, TaskReport

SCHEME = "in-process"
_PIECE_BYTES = 4 * 1024 * 1024
_hosts: dict[str, WorkerHost] = {}


def start_worker(options: WorkerOptions, rewrites: Sequence[NamedRewrite] | None = None) -> tuple[str, WorkerHost]:
    """A worker in this process and its address, until it is stopped."""
    host = WorkerHost(options, lambda address: InProcessChannel(address, _found(address)), rewrites)
    address = f"{SCHEME}://{id(host):x}"
    _hosts[address] = host
    return address, host


def stop_worker(address: str) -> None:
    host = _hosts.pop(address, None)
    if host is not None:
        host.close()


class InProcess:
    """The transport of `in-process://` addresses."""

    def connect(self, address: str, access: Access) -> InProcessChannel:
        del access
        return InProcessChannel(address, _found(address))


class InProcessChannel:
    """A way to a worker in this process."""

    def __init__(self, address: str, host: WorkerHost) -> None:
        self._address = address
        self._host = host

    @property
    def address(self) -> str:
        return self._address

    def info(self) -> WorkerInfo:
        self._check_open()
        return self._host.info()

    def status(self) -> WorkerStatus:
        return self._host.status()

    def reaches(self, directory: str, name: str, content: str) -> bool:
        return self._host.reaches(directory, name, content)

    def hold(
        self,
        query: QueryId,
        secret: str,
        patience: float,
        on_lost: Callable[[SparkfusionError], None],
        on_late: Callable[[bool], None] = lambda late: None,
    ) -> Lease:
        del patience, on_late
        self._check_open()
        lost = ExternalError(f"worker {self._address} ended the query")
        self._host.hold(query, secret, lambda: on_lost(lost))
        return _Lease(self._host, query)

    def run(self, order: TaskOrder, ends: TaskEnds, cancel: CancelToken) -> TaskReport:
        data = pack_order(order)
        _, fields, blobs = unpack(data, self._host.guard.limits.message_bytes)
        return self._host.run(order_of(fields, blobs), ends, cancel)

    def read(
        self, query: QueryId, secret: str, names: Sequence[str], cancel: CancelToken, patience: float
    ) -> Iterator[Piece]:
        del patience
        self._check_open()
        for index, path in enumerate(self._host.files(query, secret, names)):
            with pa.OSFile(str(path)) as source:
                while len(piece := source.read_buffer(_PIECE_BYTES)) and not cancel.cancelled:
                    yield index, piece

    def discard(self, key: TaskKey) -> None:
        self._host.discard(key)

    def close(self) -> None:
        return

    def _check_open(self) -> None:
        if self._host.closed:
            raise ExternalError(f"worker {self._address} is closed")


class _Lease:
    """Needs no heartbeat: worker and coordinator live and die together."""

    def __init__(self, host: WorkerHost, query: QueryId) -> None:
        self._host = host
        self._query = query

    def close(self) -> None:
        self._host.release(self._query)

    def others(self) -> int:
        return self._host.others(self._query)


def _found(address: str) -> WorkerHost:
    host = _hosts.get(address)
    if host is None:
        raise UserError(f"there is no worker {address} in this process")
    return host
