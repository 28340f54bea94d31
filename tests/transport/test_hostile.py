"""Bytes that nobody should send: a worker answers with an error or not at all, and goes on."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from sparkfusion.errors import PlanTooDeepError
from sparkfusion.ids import TaskKey
from sparkfusion.transport.base import Access
from sparkfusion.transport.codec import pack_order
from sparkfusion.transport.flight.protocol import FRAMES, LEASE, SECRET_HEADER, TASK, TOKEN_HEADER, bearer
from sparkfusion.transport.message import pack
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from tests.transport.plans import order_of_sql
from tests.worker_processes import IDLE, TOKEN, WorkerProcess

ONE_ROW = {"t": pa.table({"x": [1]})}
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    with WorkerProcess(tmp_path_factory.mktemp("worker"), "--slots", "1") as worker:
        yield worker


@pytest.fixture
def worker(target: WorkerProcess) -> Iterator[WorkerProcess]:
    """One worker for all tests; after each it has to be as it was."""
    worker = target
    yield worker
    assert worker.process.poll() is None, f"the worker has ended: {worker.log.read_text()}"
    assert worker.status() == IDLE
    channel = worker.channel()
    lease = channel.hold("q1", "s" * 24, 5.0, lambda error: None)
    order = order_of_sql("select 1 as x", TaskKey("q1", 1, 0), worker.address)
    assert channel.run(order, TaskEnds(lambda batch: None), CancelToken()).rows == 1, "and it still works"
    lease.close()
    channel.close()


def client(worker: WorkerProcess) -> flight.FlightClient:
    return flight.FlightClient(worker.address.replace("flight://", "grpc://"))


def options(token: str = TOKEN, secret: str = "") -> flight.FlightCallOptions:
    headers = [(TOKEN_HEADER.encode(), bearer(token).encode())] if token else []
    headers += [(SECRET_HEADER.encode(), secret.encode())] if secret else []
    return flight.FlightCallOptions(timeout=60, headers=headers)


def test_random_bytes_on_the_port(worker: WorkerProcess) -> None:
    chance = random.Random(1)
    for size in (1, 10, 1000, 100_000):
        for start in (b"", PREFACE, b"GET / HTTP/1.1\r\n\r\n", PREFACE + struct.pack(">I", 0xFFFFFF00)):
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", worker.port), timeout=5) as connection,
            ):
                connection.sendall(start + chance.randbytes(size))


def test_connections_that_say_nothing(worker: WorkerProcess) -> None:
    quiet = [socket.create_connection(("127.0.0.1", worker.port), timeout=5) for _ in range(50)]
    assert worker.status() == IDLE
    for connection in quiet:
        connection.close()


@pytest.mark.parametrize("token", ["", "x", TOKEN + "x", TOKEN[:-1]])
def test_without_the_token_nothing_is_answered(worker: WorkerProcess, token: str) -> None:
    with client(worker) as caller:
        for name in ("info", "status", "discard", "reaches", "nothing"):
            with pytest.raises(flight.FlightUnauthenticatedError):
                list(caller.do_action(flight.Action(name, b""), options(token)))
        for call in (
            lambda: list(caller.list_actions(options(token))),
            lambda: list(caller.list_flights(b"", options(token))),
            lambda: caller.get_flight_info(flight.FlightDescriptor.for_path("x"), options(token)),
            lambda: caller.do_get(flight.Ticket(b"x"), options(token)).read_all(),
        ):
            with pytest.raises(flight.FlightUnauthenticatedError):
                call()
        for command in (TASK, LEASE, FRAMES):
            with pytest.raises(flight.FlightError):
                exchange(caller, command, [b"x"], options(token))


def test_a_secret_opens_frames_and_nothing_else(worker: WorkerProcess) -> None:
    channel = worker.channel()
    lease = channel.hold("q7", "k" * 24, 5.0, lambda error: None)
    with client(worker) as caller:
        for command in (TASK, LEASE):
            with pytest.raises(flight.FlightError, match="not allowed to make it"):
                exchange(caller, command, [b"x"], options("", "k" * 24))
        with pytest.raises(flight.FlightUnauthenticatedError):
            list(caller.do_action(flight.Action("status", b""), options("", "k" * 24)))
    lease.close()
    channel.close()


def exchange(caller: flight.FlightClient, command: bytes, messages: list[bytes], with_options: Any) -> list[bytes]:
    """Send messages on a call, then read what comes back to its end."""
    writer, reader = caller.do_exchange(flight.FlightDescriptor.for_command(command), with_options)
    heard: list[bytes] = []
    try:
        for message in messages:
            writer.write_metadata(message)
        writer.done_writing()
        while True:
            try:
                chunk = reader.read_chunk()
            except StopIteration:
                return heard
            heard.append(chunk.app_metadata.to_pybytes() if chunk.app_metadata is not None else b"")
    finally:
        reader.cancel()
        with contextlib.suppress(flight.FlightError):
            writer.close()


def good_order(worker: WorkerProcess) -> bytes:
    return pack_order(order_of_sql("select 1", TaskKey("q1", 1, 0), worker.address))


@pytest.mark.parametrize("command", [TASK, LEASE, FRAMES, b"", b"nonsense"])
def test_nonsense_with_the_token(worker: WorkerProcess, command: bytes) -> None:
    chance = random.Random(2)
    order = good_order(worker)
    pieces = [b"", b"x", chance.randbytes(1000), order[: len(order) // 2], pack("hold"), pack("order", {}, b"x" * 100)]
    pieces += [
        struct.pack("<I", 0xFFFFFFFF),
        struct.pack("<I", 2) + b"[]",
        pack("frames", {"query": "x", "names": [1]}),
    ]
    with client(worker) as caller:
        for piece in pieces:
            try:
                heard = exchange(caller, command, [piece], options())
            except flight.FlightError:
                continue
            assert all(b'"kind":"error"' in each for each in heard)


def test_a_call_that_begins_with_nothing(worker: WorkerProcess) -> None:
    with client(worker) as caller:
        for command in (TASK, LEASE, FRAMES):
            try:
                heard = exchange(caller, command, [], options())
            except flight.FlightError:
                continue
            assert all(b'"kind":"error"' in each for each in heard)


def test_an_order_that_is_replayed_runs_nothing(worker: WorkerProcess) -> None:
    """Its query is over, so it is not held any more."""
    with client(worker) as caller:
        for _ in range(3):
            (answer,) = exchange(caller, TASK, [good_order(worker)], options())
            assert b"this worker does not know query" in answer


def test_a_huge_message_is_refused(worker: WorkerProcess) -> None:
    with client(worker) as caller:
        (answer,) = exchange(caller, TASK, [b"\0" * (300 * 1024 * 1024)], options())
        assert b"over the limit" in answer


def test_a_pickle_in_the_place_of_a_plan_is_not_run(worker: WorkerProcess, tmp_path: Path) -> None:
    import pickle
    from dataclasses import replace

    class Touch:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "touched"),)

    bad = pickle.dumps(Touch())
    order = order_of_sql("select 1", TaskKey("q2", 1, 0), worker.address)
    channel = worker.channel(Access(TOKEN))
    lease = channel.hold("q2", "s" * 24, 5.0, lambda error: None)
    for hostile in (
        replace(order, plan=bad),
        replace(order, reader=bad),
        replace(order, recipe=bad),
    ):
        with pytest.raises(Exception, match=r"plan|Python|node"):
            channel.run(hostile, TaskEnds(lambda batch: None), CancelToken())
    lease.close()
    channel.close()
    assert not (tmp_path / "touched").exists()


def test_a_plan_that_would_overflow_the_stack_is_refused(worker: WorkerProcess) -> None:
    """A chain of operators is written flat, and decoded to a tree as deep as it is long."""
    chained = order_of_sql(f"select sum(x{' + x' * 250}) from t", TaskKey("q3", 1, 0), worker.address, tables=ONE_ROW)
    deep = order_of_sql(f"select sum(x{' + x' * 600}) from t", TaskKey("q3", 1, 0), worker.address, tables=ONE_ROW)
    channel = worker.channel(Access(TOKEN))
    lease = channel.hold("q3", "s" * 24, 5.0, lambda error: None)
    assert channel.run(chained, TaskEnds(lambda batch: None), CancelToken()).rows == 1
    with pytest.raises(PlanTooDeepError, match="too deep"):
        channel.run(deep, TaskEnds(lambda batch: None), CancelToken())
    lease.close()
    channel.close()
