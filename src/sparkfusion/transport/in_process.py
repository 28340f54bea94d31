"""Workers that are threads of this process. Tasks are still sent as bytes, so that they share nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from sparkfusion.errors import ExternalError
from sparkfusion.ids import QueryId, TaskKey
from sparkfusion.transport.base import Lease, OnLate, OnLost, ignore_late, worker_name
from sparkfusion.transport.codec import order_of, pack_order
from sparkfusion.transport.message import unpack
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.server.fetch import FileChunk
from sparkfusion.worker.server.service import WorkerService
from sparkfusion.worker.server.version import WorkerInfo, WorkerStatus
from sparkfusion.worker.task import TaskOrder, TaskReport

_PIECE_BYTES = 4 * 1024 * 1024


class InProcessChannel:
    """A connection to a worker in this process. The worker of a local session has no address; those of tests have."""

    def __init__(self, service: WorkerService, address: str = "") -> None:
        self.address = address
        self._service = service

    def info(self) -> WorkerInfo:
        self._check_open()
        return self._service.info()

    def status(self) -> WorkerStatus:
        return self._service.status()

    def reaches(self, directory: str, name: str, content: str) -> bool:
        return self._service.reaches(directory, name, content)

    def hold(
        self, query: QueryId, secret: str, patience: float, on_lost: OnLost, on_late: OnLate = ignore_late
    ) -> Lease:
        self._check_open()
        lost = ExternalError(f"{worker_name(self.address)} ended the query")
        self._service.hold(query, secret, lambda: on_lost(lost))
        return _Lease(self._service, query)

    def run(self, order: TaskOrder, ends: TaskEnds, cancel: CancelToken) -> TaskReport:
        data = pack_order(order)
        _, fields, blobs = unpack(data, self._service.guard.limits.message_bytes)
        return self._service.run(order_of(fields, blobs), ends, cancel)

    def read(
        self, query: QueryId, secret: str, names: Sequence[str], cancel: CancelToken, patience: float
    ) -> Iterator[FileChunk]:
        self._check_open()
        for index, path in enumerate(self._service.files(query, secret, names)):
            with pa.OSFile(str(path)) as source:
                while len(piece := source.read_buffer(_PIECE_BYTES)) and not cancel.cancelled:
                    yield index, piece

    def discard(self, key: TaskKey) -> None:
        self._service.discard(key)

    def close(self) -> None:
        return

    def _check_open(self) -> None:
        if self._service.closed:
            raise ExternalError(f"{worker_name(self.address)} is closed")


class _Lease:
    """Needs no heartbeat: worker and coordinator are the same process."""

    def __init__(self, service: WorkerService, query: QueryId) -> None:
        self._service = service
        self._query = query

    def close(self) -> None:
        self._service.release(self._query)

    def others(self) -> int:
        return self._service.others(self._query)
