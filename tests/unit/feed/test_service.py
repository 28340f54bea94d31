"""The feed service: units and rows for whoever knows the query's key, nothing for anyone else."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from sparkfusion import ExternalError, QueryCancelledError, UserError, WorkUnit, WorkUnitFeed
from sparkfusion.feed.address import FeedAddress, ServedQuery
from sparkfusion.feed.book import FeedBook
from sparkfusion.feed.declare import FeedDeclaration
from sparkfusion.feed.provider import FeedContext, ScanRequest, WorkUnitFeedProvider
from sparkfusion.feed.service import FeedService
from sparkfusion.feed.service_client import RemoteUnits
from sparkfusion.feed.unit_codec import unpack

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
    """A service with one query, and what was delivered to it."""

    def __init__(self, provider: WorkUnitFeedProvider) -> None:
        schema = pa.schema([("v", pa.int64())])
        declared = FeedDeclaration(0, "t", WorkUnitFeed(provider), False, schema, ScanRequest(()), tasks=1)
        self.book = FeedBook(QUERY, [declared], ahead=10, on_error=lambda error: None)
        self.rows: list[tuple[int, int, list[int]]] = []
        self.failure: Exception | None = None
        self.service = FeedService("127.0.0.1", 0)
        self.address = self.service.add(QUERY, "127.0.0.1", ServedQuery(self.book, self._deliver, lambda task: 7))
        self.book.start()

    def _deliver(self, task: int, offset: int, frames: Iterator[pa.RecordBatch]) -> None:
        found = [v for batch in frames for v in batch.column(0).to_pylist()]
        if self.failure is not None:
            raise self.failure
        self.rows.append((task, offset, found))

    def close(self) -> None:
        self.book.close()
        self.service.close()


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    made = Served(getattr(request, "param", Numbers(3)))
    yield made
    made.close()


def units_of(address: FeedAddress, task: int = 0) -> RemoteUnits:
    return RemoteUnits(address, 0, task)


def payloads(data: bytes | None) -> list[int]:
    assert data is not None
    return [unit.payload for unit in unpack(data, trust_python=False)]


def test_units_come_in_order_and_again_to_another_attempt(served: Served) -> None:
    found, offset = [], 0
    units = units_of(served.address)
    while (data := units.take(offset)) is not None:
        found += payloads(data)
        offset += 1
    assert found == [0, 1, 2]
    again = [number for place in range(offset) for number in payloads(units_of(served.address).take(place))]
    assert again == found


def test_rows_are_delivered_whole(served: Served) -> None:
    batches = [pa.record_batch({"v": pa.array([n, n], pa.int64())}) for n in range(3)]
    units_of(served.address, 5).deliver(2, iter(batches))
    assert served.rows == [(5, 2, [0, 0, 1, 1, 2, 2])]
    assert units_of(served.address).first() == 7


def test_a_reader_that_has_gone_ends_the_task(served: Served) -> None:
    served.failure = QueryCancelledError("the consumer closed the query")
    with pytest.raises(QueryCancelledError, match="the consumer closed"):
        units_of(served.address).deliver(0, iter([pa.record_batch({"v": pa.array([1], pa.int64())})]))


@pytest.mark.parametrize("served", [Numbers(0, ValueError("the listing is broken"))], indirect=True)
def test_an_error_of_the_provider_reaches_the_task(served: Served) -> None:
    with pytest.raises(UserError, match="table 't' failed: ValueError: the listing is broken"):
        units_of(served.address).take(0)


def test_a_query_that_is_over_has_no_units(served: Served) -> None:
    served.service.remove(QUERY)
    with pytest.raises(QueryCancelledError):
        units_of(served.address).take(0)


@pytest.mark.parametrize(("query", "key"), [(QUERY, "guessed"), (QUERY, ""), ("other", None)])
def test_without_the_key_there_is_nothing(served: Served, query: str, key: str | None) -> None:
    shown = served.address.key if key is None else key
    with pytest.raises(QueryCancelledError):
        units_of(replace(served.address, query=query, key=shown)).take(0)
    assert payloads(units_of(served.address).take(0))


@pytest.mark.parametrize("body", [b"", b"\xff\x00", b"[]", b"{}", b'{"query": 1}', b"x" * 100_000, b"[" * 10_000])
@pytest.mark.parametrize("action", ["take", "failed", "first", "enough", "other"])
def test_nonsense_is_refused_and_others_are_served(served: Served, body: bytes, action: str) -> None:
    client = flight.FlightClient(f"grpc://127.0.0.1:{served.address.port}")
    with client, pytest.raises((flight.FlightError, pa.ArrowException)):
        list(client.do_action(flight.Action(action, body)))
    assert payloads(units_of(served.address).take(0))


@pytest.mark.parametrize("field", ["feed", "task", "offset"])
@pytest.mark.parametrize("value", [None, "x", {}, -1])
def test_fields_that_make_no_sense_are_refused(served: Served, field: str, value: Any) -> None:
    request = {"query": QUERY, "key": served.address.key, "feed": 0, "task": 0, "offset": 0, "host": "h", field: value}
    client = flight.FlightClient(f"grpc://127.0.0.1:{served.address.port}")
    with client, pytest.raises((flight.FlightError, pa.ArrowException)):
        list(client.do_action(flight.Action("take", json.dumps(request).encode())))
    assert payloads(units_of(served.address).take(0))


def test_nobody_gets_ahead_of_a_ledger(served: Served) -> None:
    with pytest.raises(ExternalError, match="ahead of what it was given"):
        units_of(served.address).take(1)
    assert payloads(units_of(served.address).take(0))


def test_bytes_that_are_no_call_disturb_nobody(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.address.port), timeout=10) as connection:
        connection.sendall(b"\x00\xff" * 5000)
    assert payloads(units_of(served.address).take(0))


def test_a_driver_that_does_not_answer_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = FeedAddress("127.0.0.1", taken.getsockname()[1], QUERY, "key")
        with pytest.raises(ExternalError, match=r"feed service at 127\.0\.0\.1") as raised:
            units_of(address).take(0)
        assert "feed_host" in (raised.value.hint or "")


def test_the_key_is_not_shown(served: Served) -> None:
    assert served.address.key not in repr(served.address)
