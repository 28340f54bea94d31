"""Resident workers register with the driver: one for each executor, for as long as its call lasts."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from sparkfusion import ExternalError
from sparkfusion.runner.spark.driver_calls.feed_server import FeedServer
from sparkfusion.runner.spark.driver_calls.register_call import RegisterAddress, RegisterCall
from sparkfusion.runner.spark.driver_calls.registry import LEAVE, SPARE, WELCOME, Registry
from tests.behaviour.probes import until

LOOPBACK = "127.0.0.1"
LAUNCH = 0
DRIVER = """
import time
from sparkfusion.runner.spark.driver_calls.feed_server import FeedServer
from sparkfusion.runner.spark.driver_calls.registry import Registry
server = FeedServer("127.0.0.1", 0)
print(server.port, server.add_registry(Registry().serve), flush=True)
time.sleep(60)
"""


class Office:
    """A registry behind a server, and the calls of workers to it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.registry = Registry()
        self.registry.expect(LAUNCH, tasks=2)
        self.server = FeedServer(LOOPBACK, 0)
        self.address = RegisterAddress(LOOPBACK, self.server.port, self.server.add_registry(self.registry.serve))

    def register(self, executor: str, task: int) -> Worker:
        return self._stack.enter_context(Worker(self.address, executor, task))


class Worker:
    def __init__(self, address: RegisterAddress, executor: str, task: int) -> None:
        self.ended = threading.Event()
        self.place = f"flight://{executor}:{task}"
        self.call = RegisterCall(address, self.place, executor, LAUNCH, task, self.ended)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.call.__exit__(None, None, None)


@pytest.fixture
def office() -> Iterator[Office]:
    with ExitStack() as stack:
        made = Office(stack)
        yield made
        made.registry.end()
    assert made.server.stop()


def test_workers_are_known_while_their_calls_last(office: Office) -> None:
    first, second = office.register("a", 0), office.register("b", 1)
    assert (first.call.answer, second.call.answer) == (WELCOME, WELCOME)
    assert sorted(office.registry.addresses()) == [first.place, second.place]
    first.__exit__()
    until(lambda: office.registry.addresses() == [second.place])


def test_the_end_reaches_every_worker(office: Office) -> None:
    workers = [office.register("a", 0), office.register("b", 1)]
    office.registry.end()
    assert [worker.ended.wait(10) for worker in workers] == [True, True]
    assert [worker.call.told for worker in workers] == [True, True]
    assert office.register("c", 2).call.answer == LEAVE


def test_a_driver_that_dies_ends_the_worker_without_telling_it() -> None:
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout is not None
        port, secret = driver.stdout.readline().split()
        with Worker(RegisterAddress(LOOPBACK, int(port), secret), "a", 0) as worker:
            assert worker.call.answer == WELCOME
            driver.kill()
            assert worker.ended.wait(10)
            assert not worker.call.told
    finally:
        driver.kill()
        driver.communicate()


def test_a_second_worker_in_an_executor_leaves(office: Office) -> None:
    first = office.register("a", 0)
    assert office.register("a", 1).call.answer == LEAVE
    assert office.registry.addresses() == [first.place]
    assert office.registry.count_tasks() == 1


def test_a_speculative_copy_waits_instead_of_ending_its_original(office: Office) -> None:
    """Spark ends the other attempt at a task when one attempt is done."""
    office.register("a", 0)
    original = office.register("b", 1)
    copy = office.register("a", 1)
    assert copy.call.answer == SPARE
    assert not copy.ended.is_set()
    assert original.place in office.registry.addresses()
    assert copy.place not in office.registry.addresses()


def test_a_worker_that_was_killed_registers_again_at_once(office: Office) -> None:
    killed = office.register("a", 0)
    again: list[Worker] = []
    thread = threading.Thread(target=lambda: again.append(office.register("a", 0)))
    thread.start()  # it registers before the end of the first call is noticed
    killed.__exit__()
    thread.join()
    assert again[0].call.answer == WELCOME
    assert office.registry.addresses() == [again[0].place]


def test_only_the_secret_of_the_registry_opens_it(office: Office) -> None:
    with pytest.raises(ExternalError, match=r"feed server at .* does not answer"):
        RegisterCall(replace(office.address, secret="x" * 43), "flight://x:1", "a", LAUNCH, 0, threading.Event())
    assert "secret" not in repr(office.address)
    assert office.registry.addresses() == []
    office.server.remove_registry(office.address.secret)
    with pytest.raises(ExternalError):
        RegisterCall(office.address, "flight://x:1", "a", LAUNCH, 0, threading.Event())


def test_a_query_waits_for_workers_that_were_started(office: Office) -> None:
    office.registry.expect(LAUNCH, tasks=2)
    began = time.monotonic()
    office.registry.wait_for_workers(0.3)
    assert time.monotonic() >= began + 0.2
    office.register("a", 0)
    office.register("b", 1)
    office.registry.wait_for_workers(60)
    assert len(office.registry.addresses()) == 2


def test_nobody_waits_for_a_job_that_has_ended(office: Office) -> None:
    office.registry.forget(LAUNCH)
    office.registry.wait_for_workers(60)
    assert office.registry.addresses() == []
    assert office.registry.count_tasks() == 0


def test_nobody_waits_for_workers_that_come_later(office: Office) -> None:
    office.register("a", 0)
    office.registry.expect(LAUNCH + 1, tasks=3)
    office.registry.wait_for_workers(60)
    assert len(office.registry.addresses()) == 1
    assert office.registry.count_tasks() == 5


def test_a_worker_finds_the_address_by_which_it_reaches_the_driver(office: Office) -> None:
    assert office.address.own_host() == LOOPBACK
