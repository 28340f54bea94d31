"""A query whose tasks read a feed, served in each way that there is: by a server, or through a mailbox of files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from sparkfusion import SparkfusionError, WorkUnit, WorkUnitFeed
from sparkfusion.errors import ProtocolError
from sparkfusion.feed.book import FeedBook, TaskUnits
from sparkfusion.feed.feed import FeedDeclaration
from sparkfusion.feed.provider import FeedContext, ScanRequest, WorkUnitFeedProvider
from sparkfusion.feed.unit_codec import unpack as unpack_units
from sparkfusion.ids import TaskKey
from sparkfusion.runner.spark.driver_calls.feed_call import FeedCall
from sparkfusion.runner.spark.driver_calls.feed_server import FeedServer
from sparkfusion.runner.spark.feed_address import FedTask, FeedAddress, MailAddress, ServedQuery
from sparkfusion.runner.spark.mail.mail_call import MailCall
from sparkfusion.runner.spark.mail.mail_server import MailServer
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.task import TaskOrder
from sparkfusion.worker.unit_files import FeedInput

QUERY = "query"
Address = FeedAddress | MailAddress


class Numbers(WorkUnitFeedProvider):
    def __init__(self, count: int, error: Exception | None = None) -> None:
        self._count = count
        self._error = error

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[WorkUnit]:
        yield from map(WorkUnit, range(self._count))
        if self._error is not None:
            raise self._error


class Served:
    """One query with a feed, and what was delivered to it."""

    address: Address

    def __init__(self, provider: WorkUnitFeedProvider) -> None:
        schema = pa.schema([("v", pa.int64())])
        declared = FeedDeclaration(0, "t", WorkUnitFeed(provider), False, schema, ScanRequest(()), tasks=1)
        self.book = FeedBook(QUERY, [declared], ahead=10, on_error=lambda error: None)
        self.rows: list[tuple[int, int, list[int]]] = []
        self.failure: Exception | None = None
        self.before_delivery: Callable[[], object] = lambda: None
        self.aborted: list[SparkfusionError] = []
        self.query = ServedQuery(self._ends, lambda task: 7)
        self.book.start()

    def _ends(self, task: FedTask) -> TaskEnds:
        if task.feed not in self.book.declared:
            raise ProtocolError("no such feed")
        units = TaskUnits(self.book, task.feed, task.task, task.host, task.is_gone)
        return TaskEnds(units=units, deliver=functools.partial(self._deliver, task.task))

    def _deliver(self, task: int, offset: int, frames: Iterator[pa.RecordBatch]) -> None:
        self.before_delivery()
        found = [v for batch in frames for v in batch.column(0).to_pylist()]
        if self.failure is not None:
            raise self.failure
        self.rows.append((task, offset, found))


@contextmanager
def serve_by_server(provider: WorkUnitFeedProvider) -> Iterator[tuple[Served, FeedServer, FeedAddress]]:
    served = Served(provider)
    server = FeedServer("127.0.0.1", 0)
    address = server.add(QUERY, "127.0.0.1", served.query)
    served.address = address
    try:
        yield served, server, address
    finally:
        served.book.close()
        assert server.stop()


@contextmanager
def serve_by_mail(
    provider: WorkUnitFeedProvider, place: str, patience: float = 60.0
) -> Iterator[tuple[Served, MailServer]]:
    served = Served(provider)
    server = MailServer(place, QUERY, served.query, served.aborted.append, patience)
    served.address = server.address
    try:
        yield served, server
    finally:
        served.book.close()
        server.close()


def call(address: Address, task: int = 0) -> FeedCall | MailCall:
    return MailCall(address, 0, task) if isinstance(address, MailAddress) else FeedCall(address, 0, task)


def take(address: Address, place: int = 0) -> list[int]:
    with call(address) as units:
        return payloads(units.take(place))


def payloads(data: bytes | None) -> list[int]:
    assert data is not None
    return [unit.payload for unit in unpack_units(data, trust_python=False)]


def deliver(units: FeedCall | MailCall, offset: int, batches: Iterable[pa.RecordBatch]) -> None:
    """As a task does that reads a feed and whose rows go to the consumer."""
    feed = FeedInput(0, "t", files=False, schema=b"", columns=())
    ends = units.ends(TaskOrder(TaskKey(QUERY, 1, 0), b"", feed=feed, destination="consumer"), "none")
    assert ends.deliver is not None
    ends.deliver(offset, iter(batches))


def numbers(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"v": pa.array(values, pa.int64())})
