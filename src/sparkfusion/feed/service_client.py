"""A task's way to the feed service of its coordinator."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyarrow import flight

from sparkfusion.errors import ExternalError, QueryCancelledError, SparkfusionError, UserError
from sparkfusion.feed.address import END, ENOUGH, ERROR, FAILED, FIRST, GRANT, POLL_SECONDS, TAKE, FeedAddress
from sparkfusion.plan.feeds import FeedId

_CALL_SECONDS = POLL_SECONDS + 30.0


class RemoteUnits:
    """Units of one task, from another process. A connection is shared by all tasks of this process."""

    def __init__(self, address: FeedAddress, feed: FeedId, task: int) -> None:
        self._address = address
        self._request = {"query": address.query, "key": address.key, "feed": feed, "task": task}

    def take(self, offset: int) -> bytes | None:
        while True:
            answer = self._call(TAKE, offset=offset, host=socket.gethostname())
            status, data = answer[:1], answer[1:]
            if status == GRANT:
                return data
            if status == END:
                return None
            if status == ERROR:
                raise _told(data)

    def first(self) -> int:
        """Where an attempt at a streaming task begins."""
        return int(self._call(FIRST))

    def failed(self, offset: int) -> None:
        try:
            self._call(FAILED, offset=offset)
        except SparkfusionError:  # only a count
            return

    def enough(self) -> None:
        try:
            self._call(ENOUGH)
        except SparkfusionError:  # others read more than they need
            return

    def deliver(self, offset: int, frames: Iterator[pa.RecordBatch]) -> None:
        """Give the rows of a grant to the reader; returns when it has them."""
        first = next(frames)
        descriptor = flight.FlightDescriptor.for_command(json.dumps({**self._request, "offset": offset}).encode())
        try:
            writer, answers = self._client.do_put(descriptor, first.schema)
            with writer:
                writer.write_batch(first)
                for frame in frames:
                    writer.write_batch(frame)
                writer.done_writing()
                answer = answers.read().to_pybytes()
        except (flight.FlightError, pa.ArrowException, OSError) as error:
            raise self._unreachable(error) from error
        if answer != END:
            raise _told(answer.removeprefix(ERROR))

    @property
    def _client(self) -> Any:
        return _connected(self._address.host, self._address.port)

    def _call(self, action: str, **more: object) -> bytes:
        body = json.dumps({**self._request, **more}).encode()
        options = flight.FlightCallOptions(timeout=_CALL_SECONDS)
        try:
            answers = list(self._client.do_action(flight.Action(action, body), options))
        except (flight.FlightError, pa.ArrowException, OSError) as error:
            raise self._unreachable(error) from error
        return b"".join(answer.body.to_pybytes() for answer in answers)

    def _unreachable(self, error: Exception) -> SparkfusionError:
        if isinstance(error, flight.FlightUnauthenticatedError):
            return QueryCancelledError("the query has ended")
        place = f"{self._address.host}:{self._address.port}"
        return ExternalError(
            f"the driver's feed service at {place} does not answer: {str(error).splitlines()[0][:200]}",
            hint="set sparkfusion.feed_host and sparkfusion.feed_port to an address of the driver that executors reach",
        )


def _told(data: bytes) -> SparkfusionError:
    """An error of the coordinator's: the query is over, or its feed failed."""
    told = json.loads(data)
    kind = QueryCancelledError if told["over"] else UserError
    return kind(told["message"], hint=told["hint"])


@lru_cache(maxsize=4)
def _connected(host: str, port: int) -> Any:
    return flight.FlightClient(f"grpc://{host}:{port}")
