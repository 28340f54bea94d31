from __future__ import annotations

import math

import pytest

from sparkfusion.exchange.manifest import Manifest
from sparkfusion.ids import TaskKey
from sparkfusion.runner.task_times import TaskTimes
from sparkfusion.worker.task import TaskReport

KEY = TaskKey("q", 1, 0)


def report(started_at: float, seconds: float) -> TaskReport:
    return TaskReport(KEY, Manifest(KEY, ()), rows=0, seconds=seconds, started_at=started_at)


@pytest.mark.parametrize(
    ("started_at", "seconds", "placed"),
    [
        (103.0, 4.0, 103.0),  # between the order and the report
        (50.0, 4.0, 106.0),  # a clock that is late
        (500.0, 4.0, 106.0),  # and one that is early
        (0.0, 50.0, 100.0),  # a task that says it ran for longer than there was time
        (0.0, -50.0, 110.0),
        (math.nan, 4.0, 106.0),
        (103.0, math.nan, 110.0),
    ],
)
def test_the_clock_of_another_machine_is_believed_if_it_can_be(
    started_at: float, seconds: float, placed: float
) -> None:
    clock = iter([100.0, 110.0])
    times = TaskTimes(lambda: next(clock))
    times.note_order(KEY)
    assert times.take_start(report(started_at, seconds)) == placed


def test_a_failed_attempt_began_when_it_got_its_slot() -> None:
    clock = iter([100.0, 102.0])
    times = TaskTimes(lambda: next(clock))
    times.note_order(KEY)
    times.note_start(KEY, "worker")
    assert times.take(KEY) == ("worker", 102.0)


def test_where_nobody_knows_when_it_began_the_order_counts() -> None:
    clock = iter([100.0])
    times = TaskTimes(lambda: next(clock))
    times.note_order(KEY)
    assert times.take(KEY) == (None, 100.0)
