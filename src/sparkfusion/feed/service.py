"""The feed service: tasks in other processes ask the coordinator for units, and give it rows for its reader.

One server for a session, one key for each query: whoever does not know it gets nothing. Spark gives no other way to
reach a running task.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import flight

from sparkfusion.errors import InternalError, QueryCancelledError, SparkfusionError
from sparkfusion.feed.address import (
    END,
    ENOUGH,
    ERROR,
    FAILED,
    FIRST,
    GRANT,
    POLL_SECONDS,
    TAKE,
    WAIT,
    FeedAddress,
    ServedQuery,
)
from sparkfusion.feed.book import FeedBook
from sparkfusion.feed.dispatch import Answer
from sparkfusion.ids import QueryId

_MOST_REQUEST_BYTES = 16 * 1024


class FeedService(flight.FlightServerBase):  # type: ignore[misc]
    """Listens from its making until `close`."""

    def __init__(self, bind: str, port: int) -> None:
        super().__init__(f"grpc://{bind}:{port}")
        self._lock = threading.Lock()
        self._queries: dict[QueryId, tuple[str, ServedQuery]] = {}

    def add(self, query: QueryId, host: str, served: ServedQuery) -> FeedAddress:
        """Serve a query; the address is for its tasks."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._queries[query] = key, served
        return FeedAddress(host, self.port, query, key)

    def remove(self, query: QueryId) -> None:
        with self._lock:
            self._queries.pop(query, None)

    def close(self) -> None:
        self.shutdown()

    # ---- Flight's side; on its threads

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        del context
        request = self._request(action.body.to_pybytes())
        served = self._served(request)
        if action.type == TAKE:
            yield _taken(served.book, request)
        elif action.type == FAILED:
            served.book[int(request["feed"])].failed(int(request["task"]), int(request["offset"]))
        elif action.type == ENOUGH:
            served.book.enough(int(request["feed"]), int(request["task"]))
        elif action.type == FIRST:
            yield str(served.first(int(request["task"]))).encode()
        else:
            raise flight.FlightServerError(f"no action {action.type!r}")

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Rows of one grant, whole: they are delivered when the last one is here. What is written back says how."""
        del context
        request = self._request(descriptor.command)
        served = self._served(request)
        try:
            served.deliver(int(request["task"]), int(request["offset"]), (chunk.data for chunk in reader))
        except SparkfusionError as error:
            writer.write(pa.py_buffer(_failure(error)))
        else:
            writer.write(pa.py_buffer(END))

    def list_actions(self, context: Any) -> list[Any]:
        del context
        return []

    def _request(self, body: bytes) -> dict[str, Any]:
        if len(body) > _MOST_REQUEST_BYTES:
            raise flight.FlightServerError("the request is too long")
        try:
            found = json.loads(body)
        except ValueError:
            raise flight.FlightServerError("the request is not JSON") from None
        if not isinstance(found, dict):
            raise flight.FlightServerError("the request is not an object")
        return found

    def _served(self, request: dict[str, Any]) -> ServedQuery:
        with self._lock:
            key, served = self._queries.get(str(request.get("query")), ("", None))
        if served is None or not hmac.compare_digest(str(request.get("key")).encode(), key.encode()):
            raise flight.FlightUnauthenticatedError("no such query, or not its key")
        return served


def _taken(book: FeedBook, request: dict[str, Any]) -> bytes:
    try:
        dispatcher = book[int(request["feed"])]
        answer = dispatcher.take(
            int(request["task"]), int(request["offset"]), host=str(request["host"]), patience=POLL_SECONDS
        )
    except InternalError as error:
        raise flight.FlightServerError(error.message) from None
    except SparkfusionError as error:
        return _failure(error)
    if isinstance(answer, Answer):
        return END if answer is Answer.END else WAIT
    return GRANT + answer.data


def _failure(error: SparkfusionError) -> bytes:
    over = isinstance(error, QueryCancelledError)
    return ERROR + json.dumps({"message": error.message, "hint": error.hint, "over": over}).encode()
