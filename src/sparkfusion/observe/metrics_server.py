"""A small HTTP server for the metrics of a worker, for Prometheus."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from sparkfusion.errors import UserError
from sparkfusion.observe.prometheus import CONTENT_TYPE

PATH = "/metrics"
_MOST_CONNECTIONS = 8
_PATIENCE_SECONDS = 5.0


class MetricsServer:
    """Answers `GET /metrics`, from its construction until `close`. It is plain HTTP without authentication, so the text
    must not contain secrets. It reads only the request line and headers.

    Args:
        text: returns the answer; called for each request, on any thread.
        port: 0 means any free port.
        patience: seconds without data after which a connection is closed.
    """

    def __init__(self, text: Callable[[], str], host: str, port: int, *, patience: float = _PATIENCE_SECONDS) -> None:
        host = host.strip("[]")
        shown = f"[{host}]" if ":" in host else host
        try:
            self._server = _Server((host, port), text, patience)
        except OSError as error:
            hint = "another --metrics-port, or 0 for a free one" if error.errno == errno.EADDRINUSE else None
            raise UserError(f"cannot serve metrics on {shown}:{port}: {error.strerror or error}", hint=hint) from error
        self.url = f"http://{shown}:{self._server.server_address[1]}{PATH}"
        name = "sparkfusion-worker-metrics"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening. Idempotent."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """Serves a few connections at once, and closes any others, so that callers that hang cannot use up the worker's
    threads."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, address: tuple[str, int], text: Callable[[], str], patience: float) -> None:
        self.text = text
        self.patience = patience
        self._places = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Bind without HTTPServer's look-up of this machine's name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: they mean that the caller has closed the connection."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "sparkfusion"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(self.server.patience)

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != PATH:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        body = self.server.text().encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scraper sends a request every few seconds."""
