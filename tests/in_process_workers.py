"""Workers in this process that have addresses, so that tests can connect to them as to others."""

from __future__ import annotations

from collections.abc import Sequence

from sparkfusion.errors import UserError
from sparkfusion.transport import schemes
from sparkfusion.transport.base import Access
from sparkfusion.transport.in_process import InProcessChannel
from sparkfusion.worker.server.rewrites import NamedRewrite
from sparkfusion.worker.server.service import WorkerService
from sparkfusion.worker.server.worker_options import WorkerOptions

SCHEME = "in-process"
services: dict[str, WorkerService] = {}


def start_worker(options: WorkerOptions, rewrites: Sequence[NamedRewrite] | None = None) -> tuple[str, WorkerService]:
    """Start a worker in this process, and return its address. The scheme is known while there is a worker."""
    service = WorkerService(options, lambda address: InProcessChannel(_find(address), address), rewrites)
    address = f"{SCHEME}://{id(service):x}"
    services[address] = service
    schemes._OURS[SCHEME] = f"{__name__}:InProcess"
    return address, service


def stop_worker(address: str) -> None:
    service = services.pop(address, None)
    if not services:
        schemes._OURS.pop(SCHEME, None)
    if service is not None:
        service.close()


class InProcess:
    """The transport of `in-process://` addresses."""

    def connect(self, address: str, access: Access) -> InProcessChannel:
        return InProcessChannel(_find(address), address)


def _find(address: str) -> WorkerService:
    service = services.get(address)
    if service is None:
        raise UserError(f"there is no worker {address} in this process")
    return service
