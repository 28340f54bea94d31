"""What the coordinator's thread does while other threads report to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from sparkfusion.config import Settings
from sparkfusion.errors import InternalError, SparkfusionError, UserError
from sparkfusion.exchange.manifest import Manifest
from sparkfusion.ids import TaskKey
from sparkfusion.observe.events import Event, StageFinished
from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, Stage, StageGraph
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.coordinate import QueryCoordinator
from sparkfusion.runner.query_state import Policy
from sparkfusion.worker.task import TaskOrder, TaskReport

STAGE = 1


def report_of(key: TaskKey) -> TaskReport:
    return TaskReport(key, Manifest(key, ()), rows=1, seconds=0.0)


def coordinator_of(events: list[Event]) -> QueryCoordinator:
    """A query of one stage, whose two tasks stream their rows to the consumer."""
    graph = StageGraph(
        (Stage(STAGE, b"", 2, (), STAGE, False, True),),
        (Exchange(STAGE, ExchangeKind.GATHER, STAGE, 2, ()),),
        Head((STAGE,), None),
    )
    return QueryCoordinator(QueryJob("q", graph, Settings(), {}, events.append), Policy())


class Launcher:
    """Reports what `when_started` says, on the coordinator's thread, and keeps the error that the query ended with."""

    def __init__(self, when_started: Callable[[TaskKey], None]) -> None:
        self._when_started = when_started
        self.error: SparkfusionError | None = None

    def start(self, orders: Sequence[TaskOrder]) -> None:
        for order in orders:
            self._when_started(order.key)

    def discard(self, key: TaskKey) -> None:
        pass

    def end(self, error: SparkfusionError | None) -> None:
        self.error = error


class InterruptedStage(int):
    """The number of a stage. Whenever it is compared, another thread runs to its end first."""

    def __new__(cls, number: int, meanwhile: Callable[[], None]) -> InterruptedStage:
        made = super().__new__(cls, number)
        made.meanwhile = meanwhile
        return made

    meanwhile: Callable[[], None]

    def __eq__(self, other: object) -> bool:
        thread = threading.Thread(target=self.meanwhile)
        thread.start()
        thread.join()
        return super().__eq__(other)

    __hash__ = int.__hash__


def test_a_task_may_report_while_the_reports_of_a_stage_are_summed_up() -> None:
    events: list[Event] = []
    coordinator = coordinator_of(events)
    late = iter(range(100, 1_000))  # tasks whose reports come at the worst moment

    def report_another() -> None:
        coordinator.report_success(report_of(TaskKey("q", 2, next(late))))

    def succeed(key: TaskKey) -> None:
        coordinator.report_success(report_of(TaskKey("q", InterruptedStage(STAGE, report_another), key.task)))

    launcher = Launcher(succeed)
    coordinator.run(launcher)
    assert launcher.error is None
    assert [event.rows for event in events if isinstance(event, StageFinished)] == [2]
    assert [report.key.task for report in coordinator.reports()] == [0, 1]


def test_what_a_discarded_attempt_reports_is_not_kept() -> None:
    """A task that was started again elsewhere may end twice. Writes move the files that reports name."""
    events: list[Event] = []
    coordinator = coordinator_of(events)

    def succeed_twice(key: TaskKey) -> None:
        coordinator.report_success(report_of(key))
        coordinator.report_success(replace(report_of(replace(key, attempt=7)), rows=99))

    launcher = Launcher(succeed_twice)
    coordinator.run(launcher)
    assert launcher.error is None
    assert [(report.key.attempt, report.rows) for report in coordinator.reports()] == [(0, 1), (0, 1)]
    assert [event.rows for event in events if isinstance(event, StageFinished)] == [2]


@pytest.mark.parametrize("defect", [RuntimeError("changed size"), KeyError("stage"), AssertionError()])
def test_a_defect_of_the_coordinator_is_not_called_an_error_of_the_user(defect: Exception) -> None:
    def fail(key: TaskKey) -> None:
        raise defect

    launcher = Launcher(fail)
    coordinator_of([]).run(launcher)
    assert isinstance(launcher.error, InternalError)
    assert type(defect).__name__ in launcher.error.message
    assert launcher.error.hint is not None
    assert "defect of sparkfusion" in launcher.error.hint


def test_an_error_of_the_launcher_keeps_its_kind() -> None:
    def fail(key: TaskKey) -> None:
        raise FileNotFoundError(2, "No such file", "orders.parquet")

    launcher = Launcher(fail)
    coordinator_of([]).run(launcher)
    assert isinstance(launcher.error, UserError)
    assert "orders.parquet" in launcher.error.message
