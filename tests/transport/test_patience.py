"""Whoever waits for a sign of life does not count the time in which it was asleep itself."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sparkfusion.errors import SparkfusionError
from sparkfusion.ids import QueryId
from sparkfusion.transport.flight import lease, stall
from sparkfusion.transport.message import pack
from sparkfusion.worker.awake_clock import AwakeClock
from sparkfusion.worker.server import service
from sparkfusion.worker.server.worker_options import WorkerOptions

QUERY = QueryId("0123456789ab")
PATIENCE = 2.0
PAUSE = 60.0
LIMIT = 60  # only ends a test that hangs


class Machine:
    """The time of a machine: it goes on by a second at every look, and by much more after `sleep`."""

    def __init__(self) -> None:
        self._now = 0.0
        self._looks = 0
        self._changed = threading.Condition()

    def monotonic(self) -> float:
        with self._changed:
            self._now += 1.0
            self._looks += 1
            self._changed.notify_all()
            return self._now

    def sleep(self) -> None:
        with self._changed:
            self._now += PAUSE

    def wait_for_looks(self, count: int) -> None:
        with self._changed:
            wanted = self._looks + count
            assert self._changed.wait_for(lambda: self._looks >= wanted, LIMIT)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()

    def clock(interval: float) -> AwakeClock:
        return AwakeClock(interval, machine.monotonic)

    for module in (lease, stall, service):
        monkeypatch.setattr(module, "AwakeClock", clock)
    return machine


def test_a_worker_that_was_asleep_keeps_its_queries(machine: Machine) -> None:
    lost = threading.Event()
    worker = service.WorkerService(WorkerOptions(slots=1), pytest.fail, [])
    try:
        worker.hold(QUERY, "secret", lost.set)
        machine.sleep()
        worker.release_silent(PATIENCE)
        worker.renew(QUERY)  # the heartbeat that had been waiting
        assert not lost.is_set()
        while not lost.is_set():  # and then none comes any more
            worker.release_silent(PATIENCE)
    finally:
        worker.close()


def test_a_coordinator_that_was_asleep_keeps_its_workers(machine: Machine) -> None:
    call = Call()
    lost: queue.Queue[SparkfusionError] = queue.Queue()
    held = hold(call, lost.put)
    machine.sleep()
    machine.wait_for_looks(2)
    assert lost.empty()
    call.answers = False
    assert "silent" in str(lost.get(timeout=LIMIT))
    held.close()


def test_a_consumer_that_was_asleep_waits_for_its_worker(machine: Machine) -> None:
    given_up = threading.Event()
    with stall.Stall(PATIENCE, given_up.set) as waiting:
        machine.sleep()
        machine.wait_for_looks(1)
        assert not given_up.is_set()
        waiting.note_progress()
        assert given_up.wait(LIMIT)  # nothing else comes


def hold(call: Call, on_lost: Callable[[SparkfusionError], None]) -> lease.FlightLease:
    client: Any = call
    options: Any = None
    return lease.FlightLease(
        client, options, "flight://127.0.0.1:1", QUERY, "secret", PATIENCE, on_lost, lambda late: None
    )


class Call:
    """Both ends of an exchange call with a worker that answers every heartbeat, while `answers` is true."""

    def __init__(self) -> None:
        self.answers = True
        self._waiting: queue.Queue[bytes | None] = queue.Queue()

    def do_exchange(self, descriptor: object, options: object) -> tuple[Call, Call]:
        return self, self

    def write_metadata(self, message: bytes) -> None:
        if self.answers:
            self._waiting.put(pack("held", {"others": 0}))

    def read_chunk(self) -> Any:
        message = self._waiting.get(timeout=LIMIT)
        if message is None:
            raise StopIteration
        return type("Chunk", (), {"app_metadata": message})

    def done_writing(self) -> None:
        self._waiting.put(None)

    def cancel(self) -> None:
        self._waiting.put(None)

    def close(self) -> None:
        pass
