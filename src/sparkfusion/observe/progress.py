"""How far a query is, computed from its events. The command line draws it; anyone may subscribe one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from sparkfusion.ids import StageId
from sparkfusion.observe.events import (
    Event,
    FeedProgress,
    JoinDecided,
    QueryFailed,
    QueryFinished,
    QueryPlanned,
    QueryRestarted,
    StageFinished,
    StageSkipped,
    StageStarted,
    TaskFailed,
    TaskFinished,
)

Status = Literal["planning", "running", "finished", "failed", "cancelled"]


@dataclass(frozen=True)
class ProgressState:
    """One moment of one query. `rows` counts what tasks have written so far, in all stages."""

    query: str = ""
    status: Status = "planning"
    started_at: float = 0.0
    ended_at: float | None = None
    reason: str | None = None
    stages_total: int = 0
    stages_done: int = 0
    rows: int = 0
    failed_attempts: int = 0
    earlier_attempts: int = 0
    planned_tasks: int = 0
    tasks_of_stage: dict[StageId, int] = field(default_factory=dict)
    finished_tasks: frozenset[tuple[StageId, int]] = frozenset()
    skipped_stages: frozenset[StageId] = frozenset()
    feeds: dict[int, FeedProgress] = field(default_factory=dict)

    @property
    def units_found(self) -> int:
        return sum(feed.found for feed in self.feeds.values())

    @property
    def units_done(self) -> int:
        return sum(feed.done for feed in self.feeds.values())

    @property
    def discovering(self) -> bool:
        return any(feed.discovering for feed in self.feeds.values())

    @property
    def tasks_done(self) -> int:
        return len(self.finished_tasks)

    @property
    def tasks_total(self) -> int:
        """The number of planned tasks, corrected when stages start: small partitions are merged into fewer tasks."""
        started = sum(self.tasks_of_stage.values())
        if len(self.tasks_of_stage) >= self.stages_total:
            return started
        return max(self.planned_tasks, started)

    def elapsed(self, now: float) -> float:
        return max(0.0, (self.ended_at or now) - self.started_at)


def advance(state: ProgressState, event: Event) -> ProgressState:
    """The state after the event. Pure: an attempt that ran twice counts once, events of other kinds change nothing."""
    match event:
        case QueryPlanned():
            return ProgressState(
                query=event.query,
                status="running",
                started_at=event.at - event.seconds,
                reason=event.reason,
                stages_total=event.stages,
                planned_tasks=event.tasks,
            )
        case QueryRestarted():
            return ProgressState(
                query=event.query,
                status="running",
                started_at=state.started_at,
                stages_total=event.stages,
                planned_tasks=event.tasks,
                failed_attempts=state.failed_attempts,
            )
        case StageStarted():
            return replace(state, tasks_of_stage=state.tasks_of_stage | {event.stage: event.tasks})
        case TaskFinished():
            task = (event.key.stage, event.key.task)
            if task in state.finished_tasks or event.key.stage in state.skipped_stages:
                return state
            return replace(
                state,
                finished_tasks=state.finished_tasks | {task},
                rows=state.rows + event.rows,
                earlier_attempts=state.earlier_attempts + event.earlier_attempts,
            )
        case StageSkipped():
            return _without_stage(state, event.stage)
        case JoinDecided() if event.absorbed is not None:
            return replace(state, stages_total=max(0, state.stages_total - 1))
        case FeedProgress():
            return replace(state, feeds=state.feeds | {event.feed: event})
        case TaskFailed():
            return replace(state, failed_attempts=state.failed_attempts + 1)
        case StageFinished():
            return replace(state, stages_done=min(state.stages_done + 1, state.stages_total))
        case QueryFinished():
            return replace(state, status="finished", ended_at=event.at)
        case QueryFailed():
            return replace(state, status="cancelled" if event.cancelled else "failed", ended_at=event.at)
    return state


def _without_stage(state: ProgressState, stage: StageId) -> ProgressState:
    """The state in which nobody waits for a stage. It may have been running."""
    return replace(
        state,
        stages_total=max(0, state.stages_total - 1),
        tasks_of_stage={number: tasks for number, tasks in state.tasks_of_stage.items() if number != stage},
        finished_tasks=frozenset(task for task in state.finished_tasks if task[0] != stage),
        skipped_stages=state.skipped_stages | {stage},
    )


class Progress:
    """A subscriber with the state of the query planned last: `session.subscribe(progress)`. Any thread may read it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._state = ProgressState(started_at=clock())

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, QueryPlanned) or event.query == self._state.query:
                self._state = advance(self._state, event)

    def restart(self) -> None:
        """Forget the last query: the clock of the next one starts now, before it is planned."""
        with self._lock:
            self._state = ProgressState(started_at=self._clock())

    @property
    def state(self) -> ProgressState:
        with self._lock:
            return self._state

    @property
    def elapsed(self) -> float:
        return self.state.elapsed(self._clock())


def describe(state: ProgressState, now: float) -> str:
    """One line for people.

    >>> describe(ProgressState(status="running", stages_total=2, stages_done=1, planned_tasks=8, rows=1200), 3.2)
    '3.2 s  stages 1/2  tasks 0/8  1,200 rows'
    """
    parts = [f"{state.elapsed(now):.1f} s"]
    if state.status == "planning":
        parts.append("planning")
    elif state.reason is not None or state.stages_total == 0:
        parts.append("single node")
    else:
        parts.append(f"stages {state.stages_done}/{state.stages_total}")
        parts.append(f"tasks {state.tasks_done}/{state.tasks_total}")
        parts.append(f"{state.rows:,} rows")
        if state.feeds:
            more = ", still discovering" if state.discovering else ""
            parts.append(f"units {state.units_done:,}/{state.units_found:,}{more}")
    if state.failed_attempts:
        parts.append(f"{state.failed_attempts} failed attempts")
    if state.earlier_attempts:
        parts.append(f"{state.earlier_attempts} repeated attempts")
    return "  ".join(parts)
