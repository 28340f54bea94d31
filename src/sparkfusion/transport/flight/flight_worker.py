"""A Flight worker as a whole: its service, its Flight server, and its connections to other workers."""

from __future__ import annotations

import errno
import socket
import ssl
import threading
from dataclasses import dataclass, field
from ipaddress import ip_address

from sparkfusion.errors import UserError, first_words
from sparkfusion.exchange.owned import remove_orphans
from sparkfusion.transport.base import Access
from sparkfusion.transport.flight.server import FlightWorker, Tls
from sparkfusion.transport.schemes import connect
from sparkfusion.worker.server.fetch import FrameSource
from sparkfusion.worker.server.service import SWEEP_SECONDS, WorkerService
from sparkfusion.worker.server.task_tally import WorkerMetrics
from sparkfusion.worker.server.worker_options import WorkerOptions

_MOST_PEERS = 1000


@dataclass(frozen=True)
class Listen:
    """Where a worker listens, and who may connect.

    Attributes:
        insecure: listen on other addresses than loopback without TLS.
        lease_seconds: how long a query is held without a heartbeat from its coordinator.
    """

    host: str
    port: int
    token: str = field(repr=False)
    tls: Tls | None = None
    insecure: bool = False
    lease_seconds: float = 10.0


class RunningWorker:
    """Serves from when it is made until `close`, which also closes the child processes of the options."""

    def __init__(self, listen: Listen, options: WorkerOptions) -> None:
        _check(listen)
        _try_out(listen)
        tls = listen.tls or Tls("", "")
        self._peers = PeerConnections(Access(ca=tls.ca or tls.peer_ca, certificate=tls.certificate, key=tls.key))
        self._service = WorkerService(options, self._peers)
        self._children = options.children
        for base in self._service.bases:
            remove_orphans(base)
        try:
            self._server = FlightWorker(self._service, listen.token, _bracket(listen.host), listen.port, listen.tls)
        except Exception as error:
            self._service.close()
            raise UserError(f"cannot listen on {listen.host}:{listen.port}: {first_words(error)}") from error
        if self._children is not None:
            self._children.warm()
        self._sweeper = Sweeper(self._service, listen.lease_seconds)
        scheme = "flight+tls" if listen.tls is not None else "flight"
        self.address = f"{scheme}://{_bracket(listen.host)}:{self._server.port}"

    def metrics(self) -> WorkerMetrics:
        """What the worker has done, and what it holds now. Any thread."""
        return self._service.metrics()

    def close(self) -> bool:
        """Release every query, then stop listening. Returns whether all calls ended; waits for no caller that hangs."""
        self._sweeper.close()
        self._service.close()
        if self._children is not None:
            self._children.close()
        self._peers.close()
        return self._server.stop()


class Sweeper:
    """A thread that releases queries whose coordinator is silent, until `close`."""

    def __init__(self, service: WorkerService, lease_seconds: float) -> None:
        self._service = service
        self._seconds = lease_seconds
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._sweep, name="sparkfusion-worker-leases", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _sweep(self) -> None:
        while not self._closed.wait(SWEEP_SECONDS):
            self._service.release_silent(self._seconds)


class PeerConnections:
    """Connections to the frames of other workers, by address. They show a query's secret. Any thread."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._open: dict[str, FrameSource] = {}

    def __call__(self, address: str) -> FrameSource:
        with self._lock:
            if address not in self._open:
                while len(self._open) >= _MOST_PEERS:
                    self._open.pop(next(iter(self._open))).close()
                self._open[address] = _connect(address, self._access)
            return self._open[address]

    def close(self) -> None:
        with self._lock:
            for each in self._open.values():
                each.close()
            self._open.clear()


def _connect(address: str, access: Access) -> FrameSource:
    try:
        return connect(address, access)
    except UserError as error:
        hint = (
            f"every worker needs the packages that the coordinator has installed; {error.hint}" if error.hint else None
        )
        raise UserError(f"a worker cannot read from {address}: {error.message}", hint=hint) from error


def _check(listen: Listen) -> None:
    if listen.tls is None and not listen.insecure and not is_loopback(listen.host):
        raise UserError(
            f"a worker on {listen.host} can be reached from other machines, and without TLS others can read everything",
            hint="give --tls-cert and --tls-key; or --insecure, if you trust the network",
        )


def _try_out(listen: Listen) -> None:
    """Check the certificate and the address first: gRPC's own errors say little about why it cannot start."""
    if listen.tls is not None:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(listen.tls.certificate, listen.tls.key)
        except (OSError, ValueError) as error:
            shown = f"{listen.tls.certificate!r} and {listen.tls.key!r}"
            raise UserError(f"{shown} are not a certificate and its key: {first_words(error)}") from error
    place = f"{listen.host}:{listen.port}"
    try:
        ((family, kind, protocol, _, address), *_) = socket.getaddrinfo(
            listen.host.strip("[]"), listen.port, type=socket.SOCK_STREAM
        )
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        hint = "another --port, or 0 for a free one" if error.errno == errno.EADDRINUSE else None
        raise UserError(f"cannot listen on {place}: {error.strerror or error}", hint=hint) from error


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
