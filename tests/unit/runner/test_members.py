"""Which task gets the next free slot."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sparkfusion.errors import QueryCancelledError
from sparkfusion.ids import TaskKey
from sparkfusion.runner.members import Member, Members
from sparkfusion.transport.base import WorkerChannel
from sparkfusion.transport.membership import RoutedTask
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.server.version import this_version

PATIENCE = 30.0


def member_with(slots: int, address: str = "one") -> Member:
    return Member(cast("WorkerChannel", SimpleNamespace(address=address)), this_version(slots))


class Asking:
    """A thread that asks for slots, notes its name in `got` when it has them, and keeps them until `release`."""

    def __init__(
        self, members: Members, name: int, got: list[int], slots: int = 1, avoid: tuple[str, ...] = ()
    ) -> None:
        self._got = got
        self._done = threading.Event()
        self.cancel = CancelToken()
        self.error: BaseException | None = None
        self._arguments = (members, name, slots, avoid)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        members, name, slots, avoid = self._arguments
        task = RoutedTask(TaskKey("q", 1, name), {})
        try:
            with members.place_task(task, avoid, self.cancel, slots):
                self._got.append(name)
                self._done.wait(PATIENCE)
        except BaseException as error:
            self.error = error

    def release(self) -> None:
        self._done.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def waiting(members: Members, count: int) -> bool:
    return len(members._waiting) == count


def test_a_thread_that_gives_its_slot_back_and_asks_again_comes_last() -> None:
    members, got = Members([member_with(1)], None), list[int]()
    with members.place_task(RoutedTask(TaskKey("q", 1, 0), {}), (), CancelToken()):
        first = Asking(members, 1, got)
        wait_for(lambda: waiting(members, 1))
    again = Asking(members, 2, got)
    wait_for(lambda: got)
    wait_for(lambda: waiting(members, 1))
    assert got == [1]
    first.release()
    wait_for(lambda: got == [1, 2])
    again.release()


def test_a_task_of_two_slots_is_not_overtaken_by_those_of_one() -> None:
    members, got = Members([member_with(2)], None), list[int]()
    with members.place_task(RoutedTask(TaskKey("q", 1, 0), {}), (), CancelToken()):
        wide = Asking(members, 1, got, slots=2)
        wait_for(lambda: waiting(members, 1))
        narrow = Asking(members, 2, got)
        wait_for(lambda: waiting(members, 2))
        assert got == []
    wait_for(lambda: got == [1])
    wide.release()
    wait_for(lambda: got == [1, 2])
    narrow.release()


def test_a_task_does_not_wait_for_one_that_waits_for_another_worker() -> None:
    members, got = Members([member_with(1, "one"), member_with(1, "two")], None), list[int]()
    holder = Asking(members, 0, got, avoid=("two",))
    wait_for(lambda: got == [0])
    first = Asking(members, 1, got, avoid=("two",))
    wait_for(lambda: waiting(members, 1))
    second = Asking(members, 2, got, avoid=("one",))
    wait_for(lambda: got == [0, 2])
    holder.release()
    wait_for(lambda: got == [0, 2, 1])
    for each in (first, second):
        each.release()


def test_a_task_that_is_cancelled_while_it_waits_lets_others_pass() -> None:
    members, got = Members([member_with(2)], None), list[int]()
    with members.place_task(RoutedTask(TaskKey("q", 1, 0), {}), (), CancelToken()):
        wide = Asking(members, 1, got, slots=2)
        wait_for(lambda: waiting(members, 1))
        narrow = Asking(members, 2, got)
        wait_for(lambda: waiting(members, 2))
        wide.cancel.cancel()
        wait_for(lambda: got == [2])
        wide.release()
        narrow.release()
    assert isinstance(wide.error, QueryCancelledError)


@pytest.mark.parametrize("slots", [1, 5])
def test_a_task_gets_at_most_all_slots_of_a_worker(slots: int) -> None:
    member = member_with(3)
    with Members([member], None).place_task(RoutedTask(TaskKey("q", 1, 0), {}), (), CancelToken(), slots):
        assert member.free == 3 - min(slots, 3)
    assert member.free == 3
