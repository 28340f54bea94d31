"""The feed server: units and rows for whoever knows the query's secret, nothing for anyone else."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from sparkfusion import ExternalError, QueryCancelledError, UserError
from sparkfusion.errors import ProtocolError
from sparkfusion.runner.spark.driver_calls.feed_server import FeedServer
from sparkfusion.runner.spark.feed_address import FeedAddress, ServedQuery
from sparkfusion.transport.codec import error_of
from sparkfusion.transport.flight.protocol import FEED, SECRET_HEADER
from sparkfusion.transport.message import pack, unpack
from sparkfusion.worker.carry_out import TaskEnds
from tests.transport.fed_tasks import QUERY, Numbers, Served, serve_by_server, take


class FromServer:
    def __init__(self, query: Served, server: FeedServer, address: FeedAddress) -> None:
        self.query = query
        self.server = server
        self.address = address


@pytest.fixture
def served() -> Iterator[FromServer]:
    with serve_by_server(Numbers(3)) as (query, server, address):
        yield FromServer(query, server, address)


def test_a_task_that_is_still_writing_hears_why_the_call_ends(served: FromServer) -> None:
    served.query.failure = QueryCancelledError("the consumer closed the query")
    headers = flight.FlightCallOptions(headers=[(SECRET_HEADER.encode(), served.address.secret.encode())])
    with flight.FlightClient(f"grpc://127.0.0.1:{served.address.port}") as client:
        writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(FEED), headers)
        writer.write_metadata(pack("begin", {"query": QUERY, "feed": 0, "task": 0, "host": "here"}))
        assert unpack(memoryview(reader.read_chunk().app_metadata), 1000)[0] == "started"
        writer.write_metadata(pack("delivered", {"offset": 0}))
        for _ in range(1000):
            writer.write_metadata(pack("enough"))
        kind, fields, _ = unpack(memoryview(reader.read_chunk().app_metadata), 1000)
        assert kind == "error"
        assert isinstance(error_of(fields), QueryCancelledError)
        reader.cancel()
        with pytest.raises(pa.ArrowException):
            writer.close()


def test_a_query_that_is_over_has_no_units(served: FromServer) -> None:
    served.server.remove(QUERY)
    with pytest.raises(QueryCancelledError):
        take(served.address)


@pytest.mark.parametrize(("query", "secret"), [(QUERY, "guessed"), (QUERY, "")])
def test_without_the_secret_there_is_nothing(served: FromServer, query: str, secret: str) -> None:
    with pytest.raises(QueryCancelledError):
        take(replace(served.address, query=query, secret=secret))
    assert take(served.address)


def test_a_secret_opens_its_own_query_only(served: FromServer) -> None:
    other = served.server.add("other", "127.0.0.1", ServedQuery(lambda task: TaskEnds(), lambda task: 0))
    with pytest.raises(UserError, match="not the secret of this query"):
        take(replace(served.address, secret=other.secret))
    assert take(served.address)


@pytest.mark.parametrize(
    "message",
    [b"\xff\x00", b"[]", b"x" * 100_000, b"[" * 10_000, pack("take", {"offset": 0}), pack("begin")],
    ids=["bytes", "list", "long", "deep", "another", "without fields"],
)
def test_nonsense_is_refused_and_others_are_served(served: FromServer, message: bytes) -> None:
    assert isinstance(answer_to(served.address, message), ProtocolError)
    assert take(served.address)


BEGIN: dict[str, Any] = {"query": QUERY, "feed": 0, "task": 0, "host": "h"}


@pytest.mark.parametrize("field", ["query", "feed", "task", "host"])
@pytest.mark.parametrize("value", [None, [], {}])
def test_fields_that_make_no_sense_are_refused(served: FromServer, field: str, value: Any) -> None:
    assert isinstance(answer_to(served.address, pack("begin", {**BEGIN, field: value})), ProtocolError)
    assert take(served.address)


def test_there_is_no_other_feed(served: FromServer) -> None:
    assert isinstance(answer_to(served.address, pack("begin", {**BEGIN, "feed": 3})), ProtocolError)


@pytest.mark.parametrize("name", [b"task", b"lease", b"frames", b""])
def test_it_is_no_worker(served: FromServer, name: bytes) -> None:
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


def test_bytes_that_are_no_call_disturb_nobody(served: FromServer) -> None:
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


FORKS = """
import os, sys
from sparkfusion.runner.spark.driver_calls.feed_server import FeedServer
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
