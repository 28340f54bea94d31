"""The feed server: units and rows for whoever knows the query's secret, nothing for anyone else."""

from __future__ import annotations

import functools
import itertools
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from sparkfusion import ExternalError, QueryCancelledError, UserError, WorkUnit, WorkUnitFeed
from sparkfusion.errors import InternalError, ProtocolError
from sparkfusion.feed.book import FeedBook, TaskUnits
from sparkfusion.feed.feed import FeedDeclaration
from sparkfusion.feed.provider import FeedContext, ScanRequest, WorkUnitFeedProvider
from sparkfusion.feed.unit_codec import unpack as unpack_units
from sparkfusion.ids import TaskKey
from sparkfusion.transport.codec import error_of
from sparkfusion.transport.feed_address import FedTask, FeedAddress, ServedQuery
from sparkfusion.transport.flight.feed_call import FeedCall
from sparkfusion.transport.flight.feed_server import FeedServer
from sparkfusion.transport.flight.protocol import FEED, SECRET_HEADER
from sparkfusion.transport.message import pack, unpack
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.task import TaskOrder
from sparkfusion.worker.unit_files import FeedInput

QUERY = "query"


class Numbers(WorkUnitFeedProvider):
    def __init__(self, count: int, error: Exception | None = None) -> None:
        self._count = count
        self._error = error

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[WorkUnit]:
        yield from map(WorkUnit, range(self._count))
        if self._error is not None:
            raise self._error


class Served:
    """A server with one query, and what was delivered to it."""

    def __init__(self, provider: WorkUnitFeedProvider) -> None:
        schema = pa.schema([("v", pa.int64())])
        declared = FeedDeclaration(0, "t", WorkUnitFeed(provider), False, schema, ScanRequest(()), tasks=1)
        self.book = FeedBook(QUERY, [declared], ahead=10, on_error=lambda error: None)
        self.rows: list[tuple[int, int, list[int]]] = []
        self.failure: Exception | None = None
        self.server = FeedServer("127.0.0.1", 0)
        self.address = self.server.add(QUERY, "127.0.0.1", ServedQuery(self._ends, lambda task: 7))
        self.book.start()

    def _ends(self, task: FedTask) -> TaskEnds:
        if task.feed not in self.book.declared:
            raise ProtocolError("no such feed")
        units = TaskUnits(self.book, task.feed, task.task, task.host, task.is_gone)
        return TaskEnds(units=units, deliver=functools.partial(self._deliver, task.task))

    def _deliver(self, task: int, offset: int, frames: Iterator[pa.RecordBatch]) -> None:
        found = [v for batch in frames for v in batch.column(0).to_pylist()]
        if self.failure is not None:
            raise self.failure
        self.rows.append((task, offset, found))

    def close(self) -> None:
        self.book.close()
        assert self.server.stop()


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    made = Served(getattr(request, "param", Numbers(3)))
    yield made
    made.close()


def call(address: FeedAddress, task: int = 0) -> FeedCall:
    return FeedCall(address, 0, task)


def take(address: FeedAddress, place: int = 0) -> list[int]:
    with call(address) as units:
        return payloads(units.take(place))


def payloads(data: bytes | None) -> list[int]:
    assert data is not None
    return [unit.payload for unit in unpack_units(data, trust_python=False)]


def deliver(units: FeedCall, offset: int, batches: Iterable[pa.RecordBatch]) -> None:
    """As a task does that reads a feed and whose rows go to the consumer."""
    feed = FeedInput(0, "t", files=False, schema=b"", columns=())
    ends = units.ends(TaskOrder(TaskKey(QUERY, 1, 0), b"", feed=feed, destination="consumer"), "none")
    assert ends.deliver is not None
    ends.deliver(offset, iter(batches))


def numbers(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"v": pa.array(values, pa.int64())})


def test_units_come_in_order_and_again_to_another_attempt(served: Served) -> None:
    found, offset = [], 0
    with call(served.address) as units:
        while (data := units.take(offset)) is not None:
            found += payloads(data)
            offset += 1
    assert found == [0, 1, 2]
    again = [number for place in range(offset) for number in take(served.address, place)]
    assert again == found


def test_rows_are_with_the_consumer_when_the_call_has_ended(served: Served) -> None:
    with call(served.address, 5) as units:
        assert units.first == 7
        deliver(units, 2, [numbers(n, n) for n in range(3)])
        deliver(units, 3, [numbers(9)])
    assert served.rows == [(5, 2, [0, 0, 1, 1, 2, 2]), (5, 3, [9])]


def test_rows_of_a_task_that_fails_on_the_way_are_not_delivered(served: Served) -> None:
    with pytest.raises(ValueError, match="half-way"), call(served.address) as units:
        deliver(units, 0, half_way())
    assert take(served.address)
    assert served.rows == []


def half_way() -> Iterator[pa.RecordBatch]:
    yield numbers(1)
    raise ValueError("half-way")


def test_a_consumer_that_has_gone_ends_the_task(served: Served) -> None:
    served.failure = QueryCancelledError("the consumer closed the query")
    with pytest.raises(QueryCancelledError, match="the consumer closed"), call(served.address) as units:
        deliver(units, 0, [numbers(1)])


def test_many_rows_for_a_consumer_that_has_gone_end_the_task_too(served: Served) -> None:
    served.failure = QueryCancelledError("the consumer closed the query")
    with pytest.raises(QueryCancelledError, match="the consumer closed"), call(served.address) as units:
        deliver_for_ever(units)


def deliver_for_ever(units: FeedCall) -> None:
    for offset in itertools.count():
        deliver(units, offset, [numbers(*range(1000))])


@pytest.mark.parametrize("served", [Numbers(0, ValueError("the listing is broken"))], indirect=True)
def test_an_error_of_the_provider_reaches_the_task(served: Served) -> None:
    with pytest.raises(UserError, match="table 't' failed: ValueError: the listing is broken"):
        take(served.address)


def test_a_query_that_is_over_has_no_units(served: Served) -> None:
    served.server.remove(QUERY)
    with pytest.raises(QueryCancelledError):
        take(served.address)


def test_a_query_that_ends_while_a_task_waits_ends_the_task(served: Served) -> None:
    assert take(served.address) == [0, 1, 2]
    served.book.stop()
    with pytest.raises(QueryCancelledError):
        take(served.address, 1)


@pytest.mark.parametrize(("query", "secret"), [(QUERY, "guessed"), (QUERY, "")])
def test_without_the_secret_there_is_nothing(served: Served, query: str, secret: str) -> None:
    with pytest.raises(QueryCancelledError):
        take(replace(served.address, query=query, secret=secret))
    assert take(served.address)


def test_a_secret_opens_its_own_query_only(served: Served) -> None:
    other = served.server.add("other", "127.0.0.1", ServedQuery(lambda task: TaskEnds(), lambda task: 0))
    with pytest.raises(UserError, match="not the secret of this query"):
        take(replace(served.address, secret=other.secret))
    assert take(served.address)


@pytest.mark.parametrize(
    "message",
    [b"\xff\x00", b"[]", b"x" * 100_000, b"[" * 10_000, pack("take", {"offset": 0}), pack("begin")],
    ids=["bytes", "list", "long", "deep", "another", "without fields"],
)
def test_nonsense_is_refused_and_others_are_served(served: Served, message: bytes) -> None:
    assert isinstance(answer_to(served.address, message), ProtocolError)
    assert take(served.address)


BEGIN: dict[str, Any] = {"query": QUERY, "feed": 0, "task": 0, "host": "h"}


@pytest.mark.parametrize("field", ["query", "feed", "task", "host"])
@pytest.mark.parametrize("value", [None, [], {}])
def test_fields_that_make_no_sense_are_refused(served: Served, field: str, value: Any) -> None:
    assert isinstance(answer_to(served.address, pack("begin", {**BEGIN, field: value})), ProtocolError)
    assert take(served.address)


def test_there_is_no_other_feed(served: Served) -> None:
    assert isinstance(answer_to(served.address, pack("begin", {**BEGIN, "feed": 3})), ProtocolError)


@pytest.mark.parametrize("name", [b"task", b"lease", b"frames", b""])
def test_it_is_no_worker(served: Served, name: bytes) -> None:
    with pytest.raises(flight.FlightUnauthorizedError):
        answer_to(served.address, pack("begin", BEGIN), name)


def answer_to(address: FeedAddress, message: bytes, name: bytes = FEED) -> Exception:
    """What a call that begins so is answered; it has to be an error."""
    with flight.FlightClient(f"grpc://127.0.0.1:{address.port}") as client:
        options = flight.FlightCallOptions(timeout=30, headers=[(SECRET_HEADER.encode(), address.secret.encode())])
        writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(name), options)
        try:
            writer.write_metadata(message)
            kind, fields, _ = unpack(memoryview(reader.read_chunk().app_metadata), 100_000)
        finally:
            reader.cancel()
        assert kind == "error"
        return error_of(fields)


def test_nobody_gets_ahead_of_a_ledger(served: Served) -> None:
    with pytest.raises(InternalError, match="ahead of what it was given"):
        take(served.address, 1)
    assert take(served.address)


def test_bytes_that_are_no_call_disturb_nobody(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.address.port), timeout=10) as connection:
        connection.sendall(b"\x00\xff" * 5000)
    assert take(served.address)


def test_a_driver_that_does_not_answer_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = FeedAddress("127.0.0.1", taken.getsockname()[1], QUERY, "secret")
        with pytest.raises(ExternalError, match=r"feed server at 127\.0\.0\.1") as raised:
            take(address)
        assert "feed_host" in (raised.value.hint or "")


def test_the_secret_is_not_shown(served: Served) -> None:
    assert served.address.secret not in repr(served.address)


FORKS = """
import os, sys
from sparkfusion.transport.flight.feed_server import FeedServer
server = FeedServer("127.0.0.1", 0)
child = os.fork()
if child == 0:
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), server.stop())
"""


def test_a_forked_child_leaves_the_server_to_its_parent() -> None:
    """pyarrow ends servers when a process exits, and waits for their threads, which a child does not have."""
    ended = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, ended.stdout) == (0, "7 True\n"), ended.stderr
