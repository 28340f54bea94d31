"""Who gets one task for a whole plan, and how many partitions it runs."""

from __future__ import annotations

import pytest

from sparkfusion.config import Settings
from sparkfusion.session.task_width import TaskWidth, choose_width

GIB = 1 << 30


def width(machines: int = 1, upper: int = 8, scanned: int = GIB, **ours: object) -> TaskWidth:
    settings = Settings({f"sparkfusion.{name}": value for name, value in ours.items()})
    return choose_width(settings, {}, machines=machines, upper=upper, scanned=scanned)


@pytest.mark.parametrize(
    ("machines", "tasks", "cores", "partitions"),
    [
        pytest.param(1, 0, 0, 8, id="one machine"),
        pytest.param(2, 0, 0, None, id="two machines"),
        pytest.param(2, 1, 0, 4, id="one of two machines"),
        pytest.param(1, 2, 0, None, id="two tasks on one machine"),
        pytest.param(1, 0, 1, None, id="one partition a task"),
        pytest.param(1, 1, 1, 1, id="one task of one partition"),
        pytest.param(1, 0, 3, 3, id="some of the cores"),
        pytest.param(3, 1, 3, 3, id="as many cores as the user says"),
    ],
)
def test_tasks_and_cores(machines: int, tasks: int, cores: int, partitions: int | None) -> None:
    assert width(machines, tasks=tasks, task_cores=cores) == TaskWidth(partitions)


def test_no_more_partitions_than_slots() -> None:
    assert width(slots=3).partitions == 3


def test_memory_decides_where_users_did_not() -> None:
    assert width(task_memory_bytes="1GiB").partitions is None
    assert width(scanned=1 << 60).partitions is None
    assert width(scanned=1 << 60, tasks=1).partitions == 8
