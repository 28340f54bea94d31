"""The dispatcher by itself: grants by offset, bounds, fairness, the end, errors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sparkfusion import FeedError, QueryCancelledError, SparkfusionError, WorkUnit, WorkUnitFeed
from sparkfusion.feed.dispatch import MOST_UNITS_AT_ONCE, Dispatcher, NoGrant
from sparkfusion.feed.ledger import Grant, Ledger
from sparkfusion.feed.provider import FeedContext, ScanRequest
from sparkfusion.feed.unit_codec import unpack
from tests.behaviour.probes import PATIENCE, until
from tests.suites.feeds import Door, Scripted, counting_up


class Dispatched:
    """A dispatcher over a script, closed at the end of the test."""

    def __init__(self) -> None:
        self._made: list[Dispatcher] = []
        self.errors: list[SparkfusionError] = []

    def __call__(
        self, script: Any, *, tasks: int = 2, ahead: int = 1000, partitions: int | None = None, files: bool = False
    ) -> Dispatcher:
        feed = WorkUnitFeed(script if isinstance(script, Scripted) else Scripted(script, partitions))
        context = FeedContext("q", "f", ScanRequest(()), tasks=tasks)
        made = Dispatcher(feed, context, partitions=partitions, ahead=ahead, files=files, on_error=self.errors.append)
        self._made.append(made)
        made.start()
        return made

    def close(self) -> None:
        for made in self._made:
            made.stop()
            made.join(5)


@pytest.fixture
def dispatched() -> Iterator[Dispatched]:
    made = Dispatched()
    yield made
    made.close()


def payloads(grant: Grant | NoGrant) -> list[Any]:
    assert isinstance(grant, Grant), grant
    units = unpack(grant.data, trust_python=True)
    assert len(units) == grant.units
    return [unit.payload for unit in units]


def drain(dispatcher: Dispatcher, task: int, offset: int = 0) -> list[list[Any]]:
    """Everything that a task is given from an offset on."""
    found = []
    while not isinstance(grant := dispatcher.take(task, offset), NoGrant):
        found.append(payloads(grant))
        offset += 1
    assert grant is NoGrant.END
    return found


def flat(grants: list[list[Any]]) -> list[Any]:
    return [payload for grant in grants for payload in grant]


def all_found(dispatcher: Dispatcher) -> None:
    until(lambda: not dispatcher.stats().discovering, "all units are found")


def test_an_attempt_sees_what_the_one_before_saw(dispatched: Dispatched) -> None:
    dispatcher = dispatched(range(50), tasks=3, ahead=4)
    first = [payloads(dispatcher.take(0, offset)) for offset in range(5)]
    again = [payloads(dispatcher.take(0, offset)) for offset in range(5)]
    assert first == again
    rest = drain(dispatcher, 0, 5)
    assert flat(first) + flat(rest) == list(range(50)), "and then goes on"
    assert drain(dispatcher, 0) == first + rest
    assert dispatcher.stats().handed == 50


def test_attempts_at_the_same_time_share_a_ledger(dispatched: Dispatched) -> None:
    """A speculative attempt and its original, and a task that died and does not know it."""
    dispatcher = dispatched(range(200), tasks=2, ahead=3)
    found: dict[str, list[Any]] = {}

    def attempt(name: str, task: int) -> None:
        found[name] = flat(drain(dispatcher, task))

    threads = [threading.Thread(target=attempt, args=(f"{task}/{n}", task)) for task in (0, 1) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert found["0/0"] == found["0/1"] == found["0/2"]
    assert found["1/0"] == found["1/1"] == found["1/2"]
    assert sorted(found["0/0"] + found["1/0"]) == list(range(200))


def test_asking_for_a_place_says_that_those_before_are_done(dispatched: Dispatched) -> None:
    dispatcher = dispatched(range(10), tasks=1, ahead=1)
    dispatcher.take(0, 0)
    assert dispatcher.stats().done == 0
    dispatcher.take(0, 1)
    assert dispatcher.stats().done == 1
    dispatcher.take(0, 0)
    stats = dispatcher.stats()
    assert (stats.done, stats.replayed) == (1, 1)
    dispatcher.report_failure(0, 1)
    assert dispatcher.stats().failed == 1
    dispatcher.report_failure(0, 99)
    assert dispatcher.stats().failed == 1


@pytest.mark.parametrize("ahead", [1, 2, 10])
def test_no_more_wait_than_the_bound(dispatched: Dispatched, ahead: int) -> None:
    provider = Scripted(counting_up)
    dispatcher = dispatched(provider, ahead=ahead)
    until(lambda: dispatcher.stats().waiting == ahead, "the bound is reached")
    until(lambda: provider.asked == ahead + 1, "one more is in the provider's hand")
    for offset in range(5):
        dispatcher.take(0, offset)
    stats = dispatcher.stats()
    assert stats.most_waiting == ahead
    assert stats.found - stats.handed <= ahead


def test_the_bound_is_shared_by_the_partitions_that_are_read(dispatched: Dispatched) -> None:
    provider = Scripted(lambda partition, context: iter(range(1000)), partitions=10)
    dispatcher = dispatched(provider, ahead=8, tasks=4, partitions=10)
    for task in range(4):
        dispatcher.take(task, 0)
    until(lambda: dispatcher.stats().waiting == 8, "each partition that is read has its share")
    assert sorted(provider.calls, key=str) == [0, 1, 2, 3], "the others are not begun"


def test_a_share_is_by_weight(dispatched: Dispatched) -> None:
    units = [WorkUnit("heavy", weight=100), *(WorkUnit(n) for n in range(100))]
    dispatcher = dispatched(units, tasks=2)
    all_found(dispatcher)
    assert payloads(dispatcher.take(0, 0)) == ["heavy"], "half of all the weight is in one unit"
    assert 25 <= len(payloads(dispatcher.take(1, 0))) <= 75


def test_a_grant_has_a_bound(dispatched: Dispatched) -> None:
    dispatcher = dispatched(range(5000), tasks=1, ahead=5000)
    all_found(dispatcher)
    grants = drain(dispatcher, 0)
    assert max(map(len, grants)) == MOST_UNITS_AT_ONCE
    assert flat(grants) == list(range(5000))


def test_a_task_that_asks_first_does_not_get_everything(dispatched: Dispatched) -> None:
    dispatcher = dispatched(range(100), tasks=4)
    all_found(dispatcher)
    assert len(payloads(dispatcher.take(0, 0))) == 25


def test_hosts_are_a_wish(dispatched: Dispatched) -> None:
    units = [WorkUnit(n, hosts=(f"host{n % 2}",)) for n in range(8)]
    dispatcher = dispatched(units, tasks=2)
    all_found(dispatcher)
    assert all(payload % 2 == 1 for payload in payloads(dispatcher.take(0, 0, host="host1")))
    assert len(flat(drain(dispatcher, 1))) == 4, "somebody else takes what nobody near wants"


def test_the_end_is_for_every_task(dispatched: Dispatched) -> None:
    dispatcher = dispatched([], tasks=3)
    for task in range(3):
        assert dispatcher.take(task, 0) is NoGrant.END
        assert dispatcher.take(task, 0) is NoGrant.END


def test_a_task_that_heard_the_end_hears_it_again(dispatched: Dispatched) -> None:
    """A partition of another task may still have units: they must not come to an attempt that is over."""
    provider = Scripted(lambda partition, context: [partition] * 3, partitions=2)
    dispatcher = dispatched(provider, tasks=2, partitions=2)
    first, second = drain(dispatcher, 0), drain(dispatcher, 1)
    assert sorted(flat(first) + flat(second)) == [0, 0, 0, 1, 1, 1]
    assert drain(dispatcher, 0) == first
    assert drain(dispatcher, 1) == second


def test_patience_ends(dispatched: Dispatched) -> None:
    with Door() as door:

        def script(partition: int | None, context: FeedContext) -> Iterator[int]:
            door.wait()
            yield 1

        dispatcher = dispatched(script, tasks=2)
        assert dispatcher.take(0, 0, patience=0) is NoGrant.WAIT
        assert dispatcher.take(0, 0, patience=0.01) is NoGrant.WAIT
        door.open()
        assert payloads(dispatcher.take(0, 0)) == [1]
        assert dispatcher.take(0, 1) is NoGrant.END


def _in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(call())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def test_stopping_wakes_who_waits(dispatched: Dispatched) -> None:
    with Door() as door:

        def script(partition: int | None, context: FeedContext) -> Iterator[int]:
            door.wait()
            yield 1

        dispatcher = dispatched(script)
        thread, outcome = _in_thread(lambda: dispatcher.take(0, 0))
        dispatcher.stop()
        thread.join(PATIENCE)
        assert isinstance(outcome[0], QueryCancelledError)
        with pytest.raises(QueryCancelledError):
            dispatcher.take(1, 0)
        assert not dispatcher.stats().discovering


def test_an_error_wakes_who_waits_and_is_told_once(dispatched: Dispatched) -> None:
    with Door() as door:

        def script(partition: int | None, context: FeedContext) -> Iterator[int]:
            yield 1
            door.wait()
            raise OSError("gone")

        dispatcher = dispatched(script, tasks=1)
        assert payloads(dispatcher.take(0, 0)) == [1]
        thread, outcome = _in_thread(lambda: dispatcher.take(0, 1))
        door.open()
        thread.join(PATIENCE)
        assert isinstance(outcome[0], FeedError)
        with pytest.raises(FeedError, match="the feed of table 'f' failed: OSError: gone"):
            dispatcher.take(0, 0)
        dispatcher.join(5)
        assert [str(error) for error in dispatched.errors] == ["the feed of table 'f' failed: OSError: gone"]


def test_an_error_after_the_stop_is_nobodys(dispatched: Dispatched) -> None:
    """A provider whose connection is closed under it fails; the query is over and was right."""

    def script(partition: int | None, context: FeedContext) -> Iterator[int]:
        yield 1
        context.wait(PATIENCE)
        raise OSError("the connection was closed")

    dispatcher = dispatched(script)
    dispatcher.take(0, 0)
    dispatcher.stop()
    dispatcher.join(5)
    assert dispatched.errors == []


def test_partitions_are_begun_when_a_task_is_free(dispatched: Dispatched) -> None:
    provider = Scripted(lambda partition, context: [partition], partitions=5)
    dispatcher = dispatched(provider, tasks=2, partitions=5)
    assert provider.calls == []
    assert flat(drain(dispatcher, 0)) == [0, 1, 2, 3, 4]
    assert flat(drain(dispatcher, 1)) == []


def test_the_threads_of_ended_partitions_are_not_kept(dispatched: Dispatched) -> None:
    dispatcher = dispatched(Scripted(lambda partition, context: [], partitions=300), tasks=1, partitions=300)
    assert drain(dispatcher, 0) == []
    assert len(dispatcher._threads) < 10


def test_a_ledger_counts_each_unit_once() -> None:
    ledger = Ledger()
    for task in (0, 1):
        ledger.append(task, Grant.of(['{"j":1}', '{"j":2}']))
    assert (ledger.given, ledger.done) == (4, 0)
    for offset in (0, 1, 1, 7, 0):
        ledger.acknowledge(0, offset)
    assert (ledger.given, ledger.done) == (4, 2)
    assert ledger.at(0, 1) is None
    ledger.seal(0)
    assert (ledger.is_sealed(0), ledger.is_sealed(1)) == (True, False)
