"""The coordinator's feed server. Tasks that the coordinator cannot call ask it for units, and send it rows for the
consumer.

Spark offers no other way to reach a running task. A session has one server, and each query has a secret.
"""

from __future__ import annotations

import hmac
import secrets
import threading

from sparkfusion.config import MIB
from sparkfusion.errors import ProtocolError, QueryCancelledError, SparkfusionError
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.ids import QueryId
from sparkfusion.transport.caller_side import CallerSide
from sparkfusion.transport.codec import pack_error
from sparkfusion.transport.feed_address import FedTask, FeedAddress, ServedQuery
from sparkfusion.transport.flight.calls import Call, CallServer, ServedCall
from sparkfusion.transport.flight.protocol import FEED, SMALL_MESSAGE
from sparkfusion.transport.message import pack

_MOST_BYTES = 256 * MIB


class FeedServer(CallServer):
    """Listens from when it is made until `stop`."""

    def __init__(self, bind: str, port: int) -> None:
        self._lock = threading.Lock()
        self._queries: dict[QueryId, tuple[str, ServedQuery]] = {}
        # nobody has the token: tasks show the secret of their query
        calls = {FEED: Call(self._serve_task, by_secret=True)}
        super().__init__(f"grpc://{bind}:{port}", secrets.token_urlsafe(32), self._opens, calls)

    def add(self, query: QueryId, host: str, served: ServedQuery) -> FeedAddress:
        """Serve a query, and return the address for its tasks."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._queries[query] = secret, served
        return FeedAddress(host, self.port, query, secret)

    def remove(self, query: QueryId) -> None:
        with self._lock:
            self._queries.pop(query, None)

    def _opens(self, secret: str) -> bool:
        with self._lock:
            known = [each for each, _ in self._queries.values()]
        return any(hmac.compare_digest(each.encode(), secret.encode()) for each in known)

    def _serve_task(self, call: ServedCall) -> None:
        try:
            fields, _ = call.expect("begin", SMALL_MESSAGE)
            served = self._find_query(fields.text("query"), call.secret)
            task = FedTask(fields.integer("feed"), fields.integer("task"), fields.text("host"), call.is_gone)
            ends = served.ends(task)
            call.send(pack("begun", {"first": served.first(task.task)}))
            CallerSide("a task", call.receive, call.send, ends, _MOST_BYTES, served.directory).serve_feed()
        except ChannelClosedError:
            call.send(pack_error(QueryCancelledError("the consumer closed the query")))
        except SparkfusionError as error:
            call.send(pack_error(error))

    def _find_query(self, query: QueryId, secret: str) -> ServedQuery:
        with self._lock:
            expected, served = self._queries.get(query, ("", None))
        if served is None or not hmac.compare_digest(secret.encode(), expected.encode()):
            raise ProtocolError("that is not the secret of this query")
        return served
