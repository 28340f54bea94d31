"""The progress of a query, computed from its events. Terminals, notebooks and callbacks show the same state."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
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
    TaskRunning,
)
from sparkfusion.observe.stage_progress import HEAD_STAGE, StageProgress, StageWork
from sparkfusion.plan.stage import StageGraph

Status = Literal["planning", "running", "finished", "failed", "cancelled"]


@dataclass(frozen=True)
class ProgressState:
    """The progress of one query at one moment.

    Attributes:
        reason: why the query is not distributed; then it has no stages.
        planned_stages, planned_tasks: the numbers as planned, without the head. `stages_total` and `tasks_total` are
            corrected when stages start.
        earlier_attempts: attempts on Spark that had no event of their own.
        tells_running: whether the runner has reported which tasks run. Spark does not, for tasks on its executors.
        stages: the stages that are known; the head is stage 0.
        feeds: the state of each feed, by its number.
    """

    query: str = ""
    status: Status = "planning"
    started_at: float = 0.0
    ended_at: float | None = None
    reason: str | None = None
    planned_stages: int = 0
    planned_tasks: int = 0
    failed_attempts: int = 0
    earlier_attempts: int = 0
    tells_running: bool = False
    stages: Mapping[StageId, StageProgress] = field(default_factory=dict)
    feeds: Mapping[int, FeedProgress] = field(default_factory=dict)

    @property
    def running_stages(self) -> list[StageProgress]:
        """The stages that have started and not ended, in their order; the head is last."""
        running = [stage for stage in self.stages.values() if stage.status == "running"]
        return sorted(running, key=lambda stage: (stage.stage == HEAD_STAGE, stage.stage))

    @property
    def busy_stages(self) -> list[StageProgress]:
        """The running stages of which a task has a slot. All running stages, if the runner does not report slots."""
        running = self.running_stages
        if not self.tells_running:
            return running
        return [stage for stage in running if stage.running or stage.done] or running

    @property
    def stages_total(self) -> int:
        """The number of stages that are not skipped."""
        return max(0, self.planned_stages - self._count("skipped"))

    @property
    def stages_done(self) -> int:
        return self._count("finished")

    @property
    def rows(self) -> int:
        """The rows that tasks of all stages have written so far."""
        return sum(stage.rows for stage in self._without_head)

    @property
    def bytes(self) -> int:
        return sum(stage.bytes for stage in self._without_head)

    @property
    def tasks_done(self) -> int:
        return sum(stage.done for stage in self._without_head)

    @property
    def tasks_running(self) -> int:
        return sum(stage.running for stage in self._without_head)

    @property
    def tasks_total(self) -> int:
        """The number of planned tasks, corrected when stages start: small partitions are merged into fewer tasks."""
        started = [stage for stage in self._without_head if stage.status in ("running", "finished")]
        count = sum(stage.tasks for stage in started)
        if len(started) >= self.stages_total:
            return count
        waiting = [stage for stage in self._without_head if stage.status == "waiting"]
        if len(started) + len(waiting) >= self.stages_total:
            return count + sum(stage.tasks for stage in waiting)
        return max(self.planned_tasks, count)

    @property
    def units_found(self) -> int:
        return sum(feed.found for feed in self.feeds.values())

    @property
    def units_done(self) -> int:
        return sum(feed.done for feed in self.feeds.values())

    @property
    def discovering(self) -> bool:
        return any(feed.discovering for feed in self.feeds.values())

    def elapsed(self, now: float) -> float:
        return max(0.0, (self.ended_at or now) - self.started_at)

    def feeds_of(self, stage: StageProgress) -> list[FeedProgress]:
        """The progress of the feeds that a stage reads, as far as there were events about them."""
        numbers = stage.work.feeds if self.feeds and stage.work is not None else ()
        return [self.feeds[number] for number in numbers if number in self.feeds]

    def input_bytes(self, stage: StageProgress) -> int | None:
        """The bytes that a stage reads, from files and from other stages. None as long as that is not known. Rows that
        every task reads count once."""
        if stage.work is None or stage.work.feeds:
            return None
        size = stage.work.scan_bytes
        for producer in (self.stages.get(number) for number in stage.work.producers):
            if producer is None or producer.status not in ("finished", "skipped"):
                return None
            size += producer.bytes
        return size or None

    def seconds_left(self, now: float) -> float | None:
        """The estimated seconds until the query ends, from the bytes that its stages have read and will read. At least
        the estimate of each stage. None as long as the input of some stage is not known, or no task is done."""
        counted = [stage for stage in self._without_head if stage.status != "skipped"]
        sizes = {stage.stage: self._known_bytes(stage) for stage in counted}
        begun = [stage.started_at for stage in counted if stage.started_at is not None]
        if self.status != "running" or len(sizes) < self.stages_total or not begun or None in sizes.values():
            return None
        total = sum(size or 0 for size in sizes.values())
        done = sum((sizes[stage.stage] or 0) * stage.fraction for stage in counted)
        if done == 0 or now <= min(begun):
            return None
        longest = max((stage.seconds_left(now) or 0.0 for stage in counted), default=0.0)
        return max(longest, (now - min(begun)) * (total - done) / done)

    def _known_bytes(self, stage: StageProgress) -> int | None:
        """The input bytes of a stage for the estimate. A finished stage whose input is not known counts with the bytes
        that it wrote."""
        size = self.input_bytes(stage)
        return stage.bytes if size is None and stage.status == "finished" else size

    @property
    def _without_head(self) -> list[StageProgress]:
        return [stage for stage in self.stages.values() if stage.stage != HEAD_STAGE]

    def _count(self, status: str) -> int:
        return sum(stage.status == status for stage in self._without_head)


def advance(state: ProgressState, event: Event) -> ProgressState:
    """The state after the event. Pure: an attempt that ran twice counts once, events of other kinds change nothing."""
    match event:
        case QueryPlanned():
            return ProgressState(
                query=event.query,
                status="running",
                started_at=event.at - event.seconds,
                reason=event.reason,
                planned_stages=event.stages,
                planned_tasks=event.tasks,
                stages=_waiting_stages(event.graph),
            )
        case QueryRestarted():
            return ProgressState(
                query=event.query,
                status="running",
                started_at=state.started_at,
                planned_stages=event.stages,
                planned_tasks=event.tasks,
                failed_attempts=state.failed_attempts,
                tells_running=state.tells_running,
                stages=_waiting_stages(event.graph),
            )
        case StageStarted() | StageFinished() | StageSkipped() | JoinDecided():
            return _advance_stage(state, event)
        case TaskRunning() | TaskFinished() | TaskFailed():
            return _advance_task(state, event)
        case FeedProgress():
            return replace(state, feeds={**state.feeds, event.feed: event})
        case QueryFinished():
            return replace(state, status="finished", ended_at=event.at)
        case QueryFailed():
            return replace(state, status="cancelled" if event.cancelled else "failed", ended_at=event.at)
    return state


def _waiting_stages(graph: StageGraph | None) -> dict[StageId, StageProgress]:
    if graph is None:
        return {}
    made = {
        stage.id: StageProgress(stage.id, tasks=stage.planned_tasks, work=StageWork(stage.id, graph))
        for stage in graph.stages
    }
    if not graph.head.streams:
        made[HEAD_STAGE] = StageProgress(HEAD_STAGE, tasks=1, work=StageWork(HEAD_STAGE, graph))
    return made


def _advance_stage(
    state: ProgressState, event: StageStarted | StageFinished | StageSkipped | JoinDecided
) -> ProgressState:
    if isinstance(event, JoinDecided):
        if event.absorbed is None:
            return state
        return _with(state, _stage(state, event.absorbed).skip(event.at))
    stage = _stage(state, event.stage)
    if isinstance(event, StageStarted):
        return _with(state, stage.start(event.tasks, event.at))
    return _with(state, stage.finish(event.at) if isinstance(event, StageFinished) else stage.skip(event.at))


def _advance_task(state: ProgressState, event: TaskRunning | TaskFinished | TaskFailed) -> ProgressState:
    stage, task = _stage(state, event.key.stage), event.key.task
    failures = state.failed_attempts + isinstance(event, TaskFailed)
    if stage.status == "skipped":  # a task may finish although its rows are no longer needed
        return replace(state, failed_attempts=failures)
    if isinstance(event, TaskRunning):
        changed = _with(state, stage.run_task(task, event.at))
        tells = state.tells_running or stage.stage != HEAD_STAGE
        return changed if tells == state.tells_running else replace(changed, tells_running=tells)
    if isinstance(event, TaskFailed):
        return replace(_with(state, stage.fail_task(task)), failed_attempts=failures)
    changed = _with(state, stage.finish_task(task, event.rows, event.bytes))
    if not event.earlier_attempts or stage.finished_tasks >> task & 1:
        return changed
    return replace(changed, earlier_attempts=state.earlier_attempts + event.earlier_attempts)


def _stage(state: ProgressState, number: StageId) -> StageProgress:
    return state.stages.get(number) or StageProgress(number)


def _with(state: ProgressState, stage: StageProgress) -> ProgressState:
    return replace(state, stages={**state.stages, stage.stage: stage})


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
        """Forget the last query. The time of the next query counts from now, before it is planned."""
        with self._lock:
            self._state = ProgressState(started_at=self._clock())

    @property
    def state(self) -> ProgressState:
        with self._lock:
            return self._state

    @property
    def elapsed(self) -> float:
        return self.state.elapsed(self._clock())
