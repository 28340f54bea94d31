"""The coordinator's feed server. Tasks that the coordinator cannot call ask it for units, and send it rows for the
consumer. Resident workers register here.

Spark offers no other way to reach a running task. A session has one server, and each query has a secret.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from sparkfusion.errors import ProtocolError
from sparkfusion.ids import QueryId
from sparkfusion.runner.spark.driver_calls.certificate import Certificate
from sparkfusion.runner.spark.feed_address import FeedAddress, ServedQuery
from sparkfusion.runner.spark.feed_service import serve_fed_task
from sparkfusion.shared_secrets import is_same_secret, new_secret
from sparkfusion.transport.flight.calls import Call, CallServer, ServedCall
from sparkfusion.transport.flight.protocol import FEED, WORKER


class FeedServer(CallServer):
    """Listens from when it is made until `stop`. With a certificate, it talks TLS only."""

    def __init__(self, bind: str, port: int, certificate: Certificate | None = None) -> None:
        self.certificate = certificate.public if certificate is not None else b""
        self._lock = threading.Lock()
        self._queries: dict[QueryId, tuple[str, ServedQuery]] = {}
        self._registries: dict[str, Callable[[ServedCall], None]] = {}
        # nobody has the token: tasks show the secret of their query, workers that of their registry
        calls = {FEED: Call(self._serve_task, by_secret=True), WORKER: Call(self._serve_worker, by_secret=True)}
        token = new_secret()
        if certificate is None:
            super().__init__(f"grpc://{bind}:{port}", token, self._opens, calls)
        else:
            pairs = [(certificate.public, certificate.key)]
            super().__init__(f"grpc+tls://{bind}:{port}", token, self._opens, calls, tls_certificates=pairs)

    def add(self, query: QueryId, host: str, served: ServedQuery) -> FeedAddress:
        """Serve a query, and return the address for its tasks."""
        secret = new_secret()
        with self._lock:
            self._queries[query] = secret, served
        return FeedAddress(host, self.port, query, secret, self.certificate)

    def remove(self, query: QueryId) -> None:
        with self._lock:
            self._queries.pop(query, None)

    def add_registry(self, serve: Callable[[ServedCall], None]) -> str:
        """Let `serve` answer the calls of workers that show a new secret, which is returned."""
        secret = new_secret()
        with self._lock:
            self._registries[secret] = serve
        return secret

    def remove_registry(self, secret: str) -> None:
        with self._lock:
            self._registries.pop(secret, None)

    def _opens(self, secret: str) -> bool:
        with self._lock:
            known = [*(each for each, _ in self._queries.values()), *self._registries]
        return any(is_same_secret(secret, each) for each in known)

    def _serve_task(self, call: ServedCall) -> None:
        serve_fed_task(call, lambda begin: self._find_query(begin.text("query"), call.secret))

    def _serve_worker(self, call: ServedCall) -> None:
        with self._lock:
            known = list(self._registries.items())
        for secret, serve in known:
            if is_same_secret(call.secret, secret):
                serve(call)

    def _find_query(self, query: QueryId, secret: str) -> ServedQuery:
        with self._lock:
            expected, served = self._queries.get(query, ("", None))
        if served is None or not is_same_secret(secret, expected):
            raise ProtocolError("that is not the secret of this query")
        return served
