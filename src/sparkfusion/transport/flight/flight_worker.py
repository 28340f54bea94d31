"""A Flight worker as a whole: its host, its server, its way to other workers."""

from __future__ import annotations

import errno
import socket
import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address

from sparkfusion.errors import UserError, first_words
from sparkfusion.exchange.owned import remove_orphans
from sparkfusion.transport.base import Access
from sparkfusion.transport.flight.server import FlightWorker, Tls
from sparkfusion.transport.peers import PeerConnections
from sparkfusion.worker.server.host import WorkerHost
from sparkfusion.worker.server.sweep import Sweeper
from sparkfusion.worker.server.worker_options import WorkerOptions


@dataclass(frozen=True)
class Listen:
    """Where a worker listens, and who may come.

    Attributes:
        insecure: leave loopback without TLS all the same.
        lease_seconds: how long a query is held without a word from its coordinator.
    """

    host: str
    port: int
    token: str = field(repr=False)
    tls: Tls | None = None
    insecure: bool = False
    lease_seconds: float = 10.0


class RunningWorker:
    """Serves from when it is made until `close`, which closes the options' children too."""

    def __init__(self, listen: Listen, options: WorkerOptions) -> None:
        _check(listen)
        _try_out(listen)
        tls = listen.tls or Tls("", "")
        self._peers = PeerConnections(Access(ca=tls.ca or tls.peer_ca, certificate=tls.certificate, key=tls.key))
        self._host = WorkerHost(options, self._peers)
        self._children = options.children
        for base in self._host.bases:
            remove_orphans(base)
        try:
            self._server = FlightWorker(self._host, listen.token, _bracketed(listen.host), listen.port, listen.tls)
        except Exception as error:
            self._host.close()
            raise UserError(f"cannot listen on {listen.host}:{listen.port}: {first_words(error)}") from error
        if self._children is not None:
            self._children.warm()
        self._sweeper = Sweeper(self._host, listen.lease_seconds)
        scheme = "flight+tls" if listen.tls is not None else "flight"
        self.address = f"{scheme}://{_bracketed(listen.host)}:{self._server.port}"

    def close(self) -> bool:
        """Let go of every query, then stop listening; whether all calls have ended. A hung caller is not waited for."""
        self._sweeper.close()
        self._host.close()
        if self._children is not None:
            self._children.close()
        self._peers.close()
        return self._server.stop()


def _check(listen: Listen) -> None:
    if listen.tls is None and not listen.insecure and not is_loopback(listen.host):
        raise UserError(
            f"a worker on {listen.host} can be reached from other machines, and without TLS others can read everything",
            hint="give --tls-cert and --tls-key; or --insecure, if you trust the network",
        )


def _try_out(listen: Listen) -> None:
    """gRPC says little of what keeps it from starting."""
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


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
