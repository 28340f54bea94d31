"""The workers of one query: which are alive, what each of them runs, and which one gets the next task."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from sparkfusion.errors import ExternalError, LostInputError, QueryCancelledError, SparkfusionError
from sparkfusion.ids import TaskKey
from sparkfusion.transport.base import Lease, WorkerChannel, worker_name
from sparkfusion.transport.membership import RoutedTask, Routing
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.server.fetch import FrameSource
from sparkfusion.worker.server.version import WorkerInfo

_TURN_SECONDS = 0.2
_ASKED_AT_ONCE = 32
T = TypeVar("T")
R = TypeVar("R")


class Member:
    """One worker in one query. Changed only under the lock of its `Members`."""

    def __init__(self, channel: WorkerChannel, info: WorkerInfo) -> None:
        self.channel = channel
        self.address = channel.address
        self.name = worker_name(channel.address)
        self.info = info
        self.free = info.slots
        self.running: dict[TaskKey, CancelToken] = {}
        self.lost: SparkfusionError | None = None
        self.late = False
        self.lease: Lease | None = None

    def share_free(self) -> float:
        """The share of its slots that is free; below 0 if tasks of others wait there."""
        others = self.lease.others() if self.lease is not None else 0
        return (self.free - others) / self.info.slots


class Members:
    """The workers of one query. Any thread may call any method."""

    def __init__(self, members: Sequence[Member], routing: Routing | None) -> None:
        self._members = {member.address: member for member in members}
        self._routing = routing
        self._changed = threading.Condition()
        self._waiting: dict[TaskKey, Collection[Member]] = {}  # in the order in which they came, and what they wait for

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    @contextmanager
    def place_task(
        self, task: RoutedTask, avoid: Collection[str], cancel: CancelToken, slots: int = 1
    ) -> Iterator[Member]:
        """Hold `slots` slots of a worker, or all slots that it has, while the `with` lasts. Workers to `avoid` are
        chosen last. Raises if no worker is left."""
        member = self._acquire(task, avoid, cancel, slots)
        try:
            yield member
        finally:
            with self._changed:
                member.free += min(slots, member.info.slots)
                member.running.pop(task.key, None)
                self._changed.notify_all()

    @contextmanager
    def lend_slot(self, member: Member) -> Iterator[None]:
        """Let other tasks have a task's slot while the `with` lasts."""
        with self._changed:
            member.free += 1
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._changed.wait_for(lambda: member.free > 0 or member.lost is not None)
                member.free -= 1

    def peer(self, address: str) -> FrameSource:
        """The connection to a worker that has frames."""
        member = self._members.get(address)
        if member is None or address in self.lost_addresses():
            raise LostInputError(f"worker {address} is lost")
        return member.channel

    def lose(self, member: Member, error: SparkfusionError) -> bool:
        """Note that a worker is lost, and cancel its tasks. Returns whether this was not known before."""
        with self._changed:
            news = member.lost is None
            member.lost = member.lost or error
            tokens = list(member.running.values())
            self._changed.notify_all()
        for token in tokens:
            token.cancel()
        return news

    def notice(self, member: Member, *, late: bool) -> list[TaskKey]:
        """Note that a worker's heartbeat is late, or is back. Returns its tasks, if another worker could run them."""
        with self._changed:
            member.late = late
            self._changed.notify_all()
            others = any(each.lost is None and not each.late for each in self._members.values())
            return list(member.running) if late and others else []

    def lost_addresses(self) -> set[str]:
        """Addresses of workers whose frames cannot be relied on: lost workers, and late ones while others are alive."""
        with self._changed:
            lively = any(each.lost is None and not each.late for each in self._members.values())
            return {each.address for each in self._members.values() if each.lost is not None or (each.late and lively)}

    def _acquire(self, task: RoutedTask, avoid: Collection[str], cancel: CancelToken, slots: int) -> Member:
        """Tasks get slots in the order in which they ask. Otherwise a thread whose task has just ended could take the
        slot again and again, before others wake up, and a task of many slots might never find them all free."""
        with self._changed:
            self._waiting[task.key] = ()
            try:
                while True:
                    if cancel.cancelled:
                        raise QueryCancelledError("the task was cancelled", where=task.key)
                    wanted = self._waiting[task.key] = self._candidates(avoid)
                    spoken_for = self._wanted_earlier(task.key)
                    enough = (member for member in wanted if member.free >= min(slots, member.info.slots))
                    if free := [member for member in enough if member not in spoken_for]:
                        member = self._choose(task, free)
                        member.free -= min(slots, member.info.slots)
                        member.running[task.key] = cancel
                        return member
                    self._changed.wait(_TURN_SECONDS)
            finally:
                del self._waiting[task.key]
                self._changed.notify_all()

    def _candidates(self, avoid: Collection[str]) -> list[Member]:
        """The workers that a task may run on."""
        alive = [member for member in self._members.values() if member.lost is None]
        if not alive:
            raise NoWorkerError(
                "all workers of the query were lost (see the warnings in the log)",
                hint="look into the workers' logs, and run the query again when workers are there",
            )
        wanted = [member for member in alive if not member.late] or alive
        return [member for member in wanted if member.address not in avoid] or wanted

    def _wanted_earlier(self, key: TaskKey) -> set[Member]:
        """The workers that earlier tasks are waiting for."""
        earlier = itertools.takewhile(lambda each: each[0] != key, self._waiting.items())
        return {member for _, wanted in earlier for member in wanted}

    def _choose(self, task: RoutedTask, free: Sequence[Member]) -> Member:
        if self._routing is not None:
            chosen = self._routing(task, [member.address for member in free])
            for member in free:
                if member.address == chosen:
                    return member
        return max(free, key=lambda member: (member.share_free(), task.bytes_at.get(member.address, 0)))


class NoWorkerError(ExternalError):
    """Every worker of the query is lost; a retry cannot help this query."""


def at_once(call: Callable[[T], R], each: Sequence[T]) -> list[R]:
    """Call the function with each item, all at the same time: workers may take long to answer."""
    if len(each) <= 1:
        return [call(one) for one in each]
    with ThreadPoolExecutor(min(_ASKED_AT_ONCE, len(each)), thread_name_prefix="sparkfusion-members") as pool:
        return list(pool.map(call, each))
