"""A task's call to the feed server of its coordinator: it asks for units and sends rows for the consumer."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyarrow import flight

from sparkfusion.errors import QueryCancelledError, SparkfusionError
from sparkfusion.ids import FeedId
from sparkfusion.runner.spark.driver_calls.certificate import open_client
from sparkfusion.runner.spark.feed_address import FeedAddress, driver_unreachable
from sparkfusion.runner.spark.feed_service import MOST_BYTES
from sparkfusion.transport.codec import error_of
from sparkfusion.transport.flight.protocol import FEED, SECRET_HEADER, end_call
from sparkfusion.transport.message import SMALL_MESSAGE, pack, unpack
from sparkfusion.transport.task_side import TaskSide, begin_message

_LISTEN_SECONDS = 1.0


class FeedCall(TaskSide):
    """One task's call, for as long as the `with` lasts. All tasks of this process share a connection.

    Leaving the `with` without an error waits until the coordinator has everything that was delivered.

    Attributes:
        first: the offset at which an attempt begins, for a task whose rows go to the consumer.
    """

    def __init__(self, address: FeedAddress, feed: FeedId, task: int) -> None:
        super().__init__()
        self._address = address
        self._error: SparkfusionError | None = None
        try:
            self._writer, self._reader = _connect(address.host, address.port, address.certificate).do_exchange(
                flight.FlightDescriptor.for_command(FEED),
                flight.FlightCallOptions(headers=[(SECRET_HEADER.encode(), address.secret.encode())]),
            )
        except (flight.FlightError, pa.ArrowException, OSError) as error:
            raise self._unreachable(error) from error
        try:
            self.first = self._begin(feed, task)
        except BaseException:
            end_call(self._writer, self._reader, clean=False)
            raise
        self._listener = threading.Thread(target=self._listen, name="sparkfusion-feed-listen", daemon=True)
        self._listener.start()

    def __enter__(self) -> FeedCall:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        clean = False
        try:
            if error is None:
                self._ask(pack("finish"))
                clean = True
        finally:
            end_call(self._writer, self._reader, clean=clean)
            self._listener.join()

    def send(self, message: bytes) -> None:
        if self._error is not None:
            raise self._error
        try:
            self._writer.write_metadata(message)
        except (flight.FlightError, pa.ArrowException, OSError) as error:
            self._listener.join(_LISTEN_SECONDS)  # it hears why the call has ended, if the coordinator said so
            raise self._reason(error) from error

    def _begin(self, feed: FeedId, task: int) -> int:
        try:
            self._writer.write_metadata(begin_message(self._address.query, feed, task))
            kind, fields, _ = unpack(memoryview(self._reader.read_chunk().app_metadata), SMALL_MESSAGE)
        except (flight.FlightError, pa.ArrowException, OSError, StopIteration) as error:
            raise self._unreachable(error) from error
        if kind == "error":
            raise error_of(fields)
        return fields.integer("first")

    def _listen(self) -> None:
        try:
            while True:
                kind, fields, blobs = unpack(memoryview(self._reader.read_chunk().app_metadata), MOST_BYTES)
                if kind == "error":
                    raise error_of(fields)
                self.answer(kind, blobs)
        except SparkfusionError as error:
            self._error = error
            self.close_answers(error)
        except Exception as error:
            self.close_answers(self._unreachable(error))

    def _reason(self, error: Exception) -> SparkfusionError:
        return self._error or self._unreachable(error)

    def _unreachable(self, error: Exception) -> SparkfusionError:
        if isinstance(error, flight.FlightUnauthenticatedError):
            return QueryCancelledError("the query has ended")
        return driver_unreachable(self._address.host, self._address.port, error)


@lru_cache(maxsize=4)
def _connect(host: str, port: int, certificate: bytes) -> Any:
    return open_client(host, port, certificate)
