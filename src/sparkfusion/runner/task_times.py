"""When and where attempts ran, by the coordinator's clock."""

from __future__ import annotations

from collections.abc import Callable

from sparkfusion.ids import TaskKey
from sparkfusion.worker.task import TaskReport


class TaskTimes:
    """Notes when the tasks of one query were ordered and when they began to run. Any thread may call any method."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ordered: dict[TaskKey, float] = {}
        self._begun: dict[TaskKey, tuple[str, float]] = {}

    def note_order(self, key: TaskKey) -> None:
        self._ordered[key] = self._clock()

    def note_start(self, key: TaskKey, worker: str) -> None:
        self._begun[key] = (worker, self._clock())

    def take(self, key: TaskKey) -> tuple[str | None, float]:
        """Where an attempt ran, None if that is not known, and when it began. It is forgotten then."""
        ordered = self._ordered.pop(key, None)
        worker, begun = self._begun.pop(key, (None, ordered))
        return worker, self._clock() if begun is None else begun

    def take_start(self, report: TaskReport) -> float:
        """When an attempt that reports now began to run. It is forgotten then.

        The clock of another machine may be wrong. So a time that is not between the order and now is not believed, and
        the task counts as one that has just ended.
        """
        now = self._clock()
        ordered = self._ordered.pop(report.key, now)
        self._begun.pop(report.key, None)
        if ordered <= report.started_at and report.started_at + report.seconds <= now:
            return report.started_at
        return max(ordered, min(now, now - report.seconds))
