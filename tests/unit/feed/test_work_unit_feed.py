"""WorkUnitFeed: local where its provider is, remote elsewhere, and only its id travels."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable

import cloudpickle
import pytest

from sparkfusion import FeedContext, FileUnit, UserError, WorkUnit, WorkUnitFeed
from sparkfusion.feed.ledger import Grant
from sparkfusion.feed.unit_codec import encode_unit
from tests.suites.feeds import AsyncScripted, Scripted

SECRET = "a password that only the provider knows"


class Ledgered:
    """A task's way to the coordinator: what it is asked for, and what it gives."""

    def __init__(self, *grants: list[WorkUnit]) -> None:
        self._grants = [Grant.of(encode_unit(unit) for unit in grant).data for grant in grants]
        self.asked: list[int] = []

    def take(self, offset: int) -> bytes | None:
        self.asked.append(offset)
        return self._grants[offset] if offset < len(self._grants) else None

    def report_failure(self, offset: int) -> None:
        raise NotImplementedError

    def enough(self) -> None:
        raise NotImplementedError


def test_where_it_was_made_it_has_its_provider() -> None:
    provider = Scripted(range(3))
    feed = WorkUnitFeed(provider)
    assert feed.is_local
    assert feed.inner() is provider


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
def test_only_the_id_travels(dumps: Callable[[object], bytes]) -> None:
    provider = Scripted([WorkUnit(SECRET)])
    provider.password = SECRET  # type: ignore[attr-defined]
    feed = WorkUnitFeed(provider)
    data = dumps(feed)
    assert SECRET.encode() not in data
    assert b"Scripted" not in data
    assert feed.id.encode() in data
    assert len(data) == len(dumps(WorkUnitFeed(Scripted(range(3))))), "whatever the provider is"
    there = pickle.loads(data)
    assert (there.id, there.is_local) == (feed.id, False)


def test_a_provider_that_cannot_be_pickled_does_not_keep_it_from_travelling() -> None:
    feed = WorkUnitFeed(Scripted(lambda partition, context: iter(())))
    assert pickle.loads(pickle.dumps(feed)).id == feed.id


def test_elsewhere_its_provider_is_not_there() -> None:
    there = pickle.loads(pickle.dumps(WorkUnitFeed(Scripted([]))))
    with pytest.raises(UserError, match="only the coordinator has it") as raised:
        there.inner()
    assert there.id in raised.value.message
    assert raised.value.hint


def test_a_feed_that_travels_twice_is_the_same() -> None:
    feed = WorkUnitFeed(Scripted([]))
    assert pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(feed)))).id == feed.id
    assert WorkUnitFeed(Scripted([])).id != feed.id


def test_code_that_reads_it_cannot_tell_where_it_is() -> None:
    units = [WorkUnit(1), WorkUnit(b"\x00"), FileUnit("/a b", 5), WorkUnit((1, 2))]
    local = WorkUnitFeed(Scripted(units))
    remote = WorkUnitFeed.remote(local.id, Ledgered(units[:3], units[3:]))
    assert list(local.units()) == list(remote.units()) == units


def test_asking_for_more_says_that_those_before_are_done() -> None:
    source = Ledgered([WorkUnit(1), WorkUnit(2)], [WorkUnit(3)])
    batches = WorkUnitFeed.remote("x", source).batches()
    assert [unit.payload for unit in next(batches)] == [1, 2]
    assert source.asked == [0]
    assert [unit.payload for unit in next(batches)] == [3]
    assert source.asked == [0, 1]
    assert list(batches) == []
    assert source.asked == [0, 1, 2]


@pytest.mark.parametrize("where", ["local", "remote"])
def test_it_can_be_consumed_once(where: str) -> None:
    feed = WorkUnitFeed(Scripted([1])) if where == "local" else WorkUnitFeed.remote("x", Ledgered([WorkUnit(1)]))
    assert [unit.payload for unit in feed.units()] == [1]
    with pytest.raises(UserError, match="was already read"):
        feed.units()


def test_each_partition_can_be_consumed_once() -> None:
    provider = Scripted(lambda partition, context: [partition], partitions=3)
    feed = WorkUnitFeed(provider)
    assert [[unit.payload for unit in feed.units(partition)] for partition in (2, 0)] == [[2], [0]]
    with pytest.raises(UserError, match=r"partition 2 .*was already read"):
        feed.units(2)
    assert [unit.payload for unit in feed.units(1)] == [1]


def test_reading_it_to_the_end_closes_the_provider() -> None:
    provider = Scripted(range(3))
    assert len(list(WorkUnitFeed(provider).units())) == 3
    assert (provider.ended, provider.closed) == (1, 1)


def test_leaving_it_closes_the_provider() -> None:
    provider = Scripted(range(3))
    batches = WorkUnitFeed(provider).batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert provider.closed == 1
    assert provider.contexts[0].stopped


def test_an_error_of_the_provider_comes_through() -> None:
    def script(partition: int | None, context: FeedContext) -> list[int]:
        raise LookupError("no such page")

    provider = Scripted(script)
    with pytest.raises(LookupError, match="no such page"):
        list(WorkUnitFeed(provider).units())
    assert provider.closed == 1


def test_an_asynchronous_provider_is_read_like_another() -> None:
    async def script(partition: int | None, context: FeedContext) -> AsyncIterator[int]:
        for unit in range(4):
            await asyncio.sleep(0)
            yield unit

    provider = AsyncScripted(script)
    assert [unit.payload for unit in WorkUnitFeed(provider).units()] == [0, 1, 2, 3]
    assert (provider.ended, provider.closed) == (1, 1)


def test_an_asynchronous_iterable_that_is_no_generator_is_read_once() -> None:
    """Each of its iterators begins anew: one of them must be kept."""

    class Pages:
        def __aiter__(self) -> AsyncIterator[WorkUnit]:
            return self._pages()

        async def _pages(self) -> AsyncIterator[WorkUnit]:
            for number in range(3):
                yield WorkUnit(number)

    class Provider(Scripted):
        def feed(self, partition: int | None, context: FeedContext) -> Pages:  # type: ignore[override]
            return Pages()

    units = WorkUnitFeed(Provider([])).units()
    found = [unit.payload for unit, _ in zip(units, range(10), strict=False)]
    assert found == [0, 1, 2]


def test_a_remote_feed_outside_of_a_task_says_so() -> None:
    there = pickle.loads(pickle.dumps(WorkUnitFeed(Scripted([]))))
    with pytest.raises(UserError, match="can be read only inside a task"):
        next(there.batches())


def test_python_objects_are_unpickled_only_where_they_are_trusted() -> None:
    plain, pickled = [WorkUnit(b"x"), WorkUnit({"a": [1]})], [WorkUnit((1, 2))]
    strict = WorkUnitFeed.remote("x", Ledgered(plain, pickled), trust_python=False).batches()
    assert next(strict) == tuple(plain)
    with pytest.raises(UserError, match="does not accept"):
        next(strict)
