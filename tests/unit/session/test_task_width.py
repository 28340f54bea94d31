"""Who gets one task for a whole plan, and how many partitions a task runs."""

from __future__ import annotations

import pytest

from sparkfusion.config import Settings
from sparkfusion.session.task_width import Machines, TaskWidth, choose_width, most_partitions

GIB = 1 << 30
SLOTS = 8


def width(machines: Machines | int = 1, scanned: int = GIB, **ours: object) -> tuple[int, TaskWidth]:
    """The most partitions, and the width of tasks."""
    settings = Settings({f"sparkfusion.{name}": value for name, value in ours.items()})
    there = Machines(machines) if isinstance(machines, int) else machines
    upper = most_partitions(settings, there, SLOTS)
    return upper, choose_width(settings, {}, there, upper, scanned)


@pytest.mark.parametrize(
    ("machines", "tasks", "cores", "partitions", "expected"),
    [
        pytest.param(1, 0, 0, 8, TaskWidth(whole=8), id="one machine"),
        pytest.param(1, 0, 1, 8, TaskWidth(), id="one machine, one partition a task"),
        pytest.param(1, 0, 3, 8, TaskWidth(whole=3), id="one machine, some of its cores"),
        pytest.param(1, 1, 1, 8, TaskWidth(whole=1), id="one task of one partition"),
        pytest.param(1, 2, 0, 8, TaskWidth(tasks=2, per_task=4), id="two tasks on one machine"),
        pytest.param(1, 3, 0, 6, TaskWidth(tasks=3, per_task=2), id="three tasks on one machine"),
        pytest.param(1, 2, 1, 2, TaskWidth(), id="two tasks of one partition"),
        pytest.param(1, 2, 2, 4, TaskWidth(tasks=2, per_task=2), id="two tasks of two partitions"),
        pytest.param(2, 0, 0, 8, TaskWidth(tasks=2, per_task=4), id="two machines"),
        pytest.param(8, 0, 0, 8, TaskWidth(), id="machines of one slot"),
        pytest.param(2, 0, 1, 8, TaskWidth(), id="two machines, one partition a task"),
        pytest.param(2, 0, 3, 6, TaskWidth(tasks=2, per_task=3), id="two machines, some of their cores"),
        pytest.param(2, 1, 0, 8, TaskWidth(whole=4), id="one of two machines"),
    ],
)
def test_tasks_and_cores(machines: int, tasks: int, cores: int, partitions: int, expected: TaskWidth) -> None:
    assert width(machines, tasks=tasks, task_cores=cores) == (partitions, expected)


def test_no_more_partitions_than_slots() -> None:
    assert width(slots=3)[1] == TaskWidth(whole=3)


@pytest.mark.parametrize("machines", [1, 2])
def test_memory_decides_where_users_did_not(machines: int) -> None:
    assert "memory limit" in (width(machines, task_memory_bytes="1GiB")[1].why or "")
    too_much = width(machines, 1 << 60)[1]
    assert (too_much.whole, too_much.per_task) == (None, 1)
    assert width(machines, 1 << 60, tasks=1)[1].whole == 8 // machines
    assert width(machines, 1 << 60, tasks=2, task_cores=2)[1].per_task == 2


def test_a_task_has_no_more_cores_than_its_scheduler_gives_it() -> None:
    """So that more partitions than slots of a Spark cluster run one after the other."""
    assert width(Machines(2, cores_per_task=1))[1] == TaskWidth()
    assert width(Machines(2, cores_per_task=2))[1] == TaskWidth(tasks=2, per_task=2)
    assert width(Machines(2, cores_per_task=1), tasks=1)[1].whole == 4


@pytest.mark.parametrize(
    ("machines", "cores", "expected"),
    [
        pytest.param(Machines(2, cores_per_task=4), 0, TaskWidth(tasks=2, per_task=4), id="as wide as an executor"),
        pytest.param(Machines(2, cores_per_task=4), 2, TaskWidth(tasks=4, per_task=2), id="two tasks on an executor"),
        pytest.param(Machines(2, cores_per_task=4), 1, TaskWidth(), id="one partition a task"),
        pytest.param(Machines(8, cores_per_task=1), 4, TaskWidth(tasks=2, per_task=4), id="wider than it is given"),
        pytest.param(Machines(1, cores_per_task=8), 0, TaskWidth(tasks=1, per_task=8), id="one executor"),
    ],
)
def test_a_scheduler_puts_several_tasks_on_a_machine(machines: Machines, cores: int, expected: TaskWidth) -> None:
    """All cores have work, and a cluster of one executor still runs stages: others may come."""
    assert width(machines, task_cores=cores) == (SLOTS, expected)


def test_the_memory_of_other_machines_decides() -> None:
    """Containers of a Spark cluster may have far less than this machine."""
    assert width(Machines(2, cores_per_task=4), GIB)[1].per_task == 4
    assert width(Machines(2, cores_per_task=4, memory=GIB // 4), GIB)[1].per_task == 4
    assert "could not spill" in (width(Machines(2, cores_per_task=4, memory=GIB // 16), GIB)[1].why or "")


def test_a_store_that_takes_tasks_of_one_partition() -> None:
    assert width(Machines(2, take_wide_tasks=False))[1].per_task == 1
    assert width(Machines(1, take_wide_tasks=False))[1].whole == 8
