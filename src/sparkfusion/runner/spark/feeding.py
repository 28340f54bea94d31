"""Feeds on Spark: the driver's feed service, and what tasks need to read from it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import SparkContext

from sparkfusion.config import Settings
from sparkfusion.errors import QueryCancelledError, UserError
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.delivery import Delivery, FrameBuffer
from sparkfusion.feed.address import FeedAddress, ServedQuery
from sparkfusion.feed.book import FeedBook
from sparkfusion.ids import QueryId
from sparkfusion.runner.spark.master import is_local

if TYPE_CHECKING:
    from sparkfusion.feed.service import FeedService

_LOOPBACK = "127.0.0.1"


class FeedHost:
    """The feed service of one session, started by the first query that needs it."""

    def __init__(self, spark: SparkContext) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._services: dict[tuple[str, int], FeedService] = {}

    def serve(
        self, query: QueryId, settings: Settings, book: FeedBook, delivery: Delivery, directory: str
    ) -> FeedAddress:
        """Let the query's tasks read its feeds; `directory` is for rows on their way to the reader."""

        def deliver(task: int, offset: int, frames: Iterator[pa.RecordBatch]) -> None:
            whole = FrameBuffer(directory)  # a task may die on the way
            try:
                for frame in frames:
                    whole.add(frame)
                delivery.deliver(task, offset, whole.frames())
            except ChannelClosedError:
                raise QueryCancelledError("the consumer closed the query") from None
            finally:
                whole.clear()

        return self._service(settings).add(query, self._host(settings), ServedQuery(book, deliver, delivery.first))

    def forget(self, query: QueryId) -> None:
        for service in list(self._services.values()):
            service.remove(query)

    def close(self) -> None:
        with self._lock:
            services, self._services = self._services, {}
        for service in services.values():
            service.close()

    def _host(self, settings: Settings) -> str:
        chosen = settings.text("feed_host")
        if chosen:
            return chosen
        return _LOOPBACK if is_local(self._spark) else str(self._spark.getConf().get("spark.driver.host") or _LOOPBACK)

    def _service(self, settings: Settings) -> FeedService:
        from sparkfusion.feed.service import FeedService  # needs pyarrow.flight, which nothing else on Spark does

        host, port = self._host(settings), settings.integer("feed_port")
        with self._lock:
            found = self._services.get((host, port))
            if found is None:
                try:
                    found = FeedService(host, port)
                except Exception as error:
                    raise UserError(
                        f"cannot listen for tasks at {host}:{port}: {str(error).splitlines()[0]}",
                        hint="set feed_host to an address of this machine, and feed_port to a free port",
                    ) from error
                self._services[host, port] = found
            return found
