"""Feeds on Spark: the driver's feed server, and what tasks need to read from it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from sparkfusion.config import Settings
from sparkfusion.errors import ProtocolError, UserError
from sparkfusion.exchange.delivery import Delivery
from sparkfusion.feed.book import FeedBook, TaskUnits
from sparkfusion.ids import QueryId
from sparkfusion.runner.spark.feed_address import FedTask, FeedAddress, ServedQuery
from sparkfusion.runner.spark.master import is_local, settings_of
from sparkfusion.worker.carry_out import TaskEnds

if TYPE_CHECKING:
    from pyspark import SparkContext

    from sparkfusion.runner.spark.driver_calls.feed_server import FeedServer

LOOPBACK = "127.0.0.1"


def driver_host(spark: SparkContext) -> str:
    """The address of the driver for its tasks."""
    return LOOPBACK if is_local(spark) else str(settings_of(spark).get("spark.driver.host") or LOOPBACK)


def served_query(book: FeedBook, delivery: Delivery, directory: str) -> ServedQuery:
    """What the tasks of a query get. `directory` is for rows that wait to be delivered to the consumer."""

    def ends(task: FedTask) -> TaskEnds:
        if task.feed not in book.declared:
            raise ProtocolError(f"the query has no feed {task.feed}")
        units = TaskUnits(book, task.feed, task.task, task.host, task.is_gone)
        return TaskEnds(units=units, deliver=functools.partial(delivery.deliver, task.task))

    return ServedQuery(ends, delivery.first, directory)


class LazyFeedServer:
    """The feed server of one session, started by the first query that needs it. Resident workers register there.
    `default_host` finds the address of this process for tasks, unless the user sets one; it may raise. `protection`
    names what asks for TLS, if anything does."""

    def __init__(self, default_host: Callable[[], str], protection: Callable[[], str | None]) -> None:
        self._default_host = default_host
        self._protection = protection
        self._lock = threading.Lock()
        self._servers: dict[tuple[str, int, bool], FeedServer] = {}

    def serve(self, query: QueryId, settings: Settings, served: ServedQuery) -> FeedAddress:
        """Let the query's tasks read its feeds."""
        return self.server(settings).add(query, self.host(settings), served)

    def forget(self, query: QueryId) -> None:
        for server in list(self._servers.values()):
            server.remove(query)

    def close(self) -> None:
        with self._lock:
            servers, self._servers = self._servers, {}
        for server in servers.values():
            server.stop()

    def host(self, settings: Settings) -> str:
        """The address of this process for tasks."""
        return settings.text("feed_host") or self._default_host()

    def server(self, settings: Settings) -> FeedServer:
        """The server at that address, started if it is not there yet."""
        # needs pyarrow.flight, which only feeds and resident workers do
        from sparkfusion.runner.spark.driver_calls.certificate import make_certificate
        from sparkfusion.runner.spark.driver_calls.feed_server import FeedServer

        host, port, reason = self.host(settings), settings.integer("feed_port"), self._reason_for_tls(settings)
        with self._lock:
            found = self._servers.get((host, port, reason is not None))
            if found is None:
                certificate = make_certificate(reason) if reason is not None else None
                try:
                    found = FeedServer(host, port, certificate)
                except Exception as error:
                    raise UserError(
                        f"cannot listen for tasks at {host}:{port}: {str(error).splitlines()[0]}",
                        hint="set feed_host to an address of this machine, and feed_port to a free port",
                    ) from error
                self._servers[host, port, reason is not None] = found
            return found

    def _reason_for_tls(self, settings: Settings) -> str | None:
        return "sparkfusion.feed_tls" if settings.text("feed_tls") == "always" else self._protection()
