"""The progress of one stage. A part of `ProgressState`, computed from the same events."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from sparkfusion.ids import FeedId, StageId
from sparkfusion.observe.stage_words import describe_head, describe_stage
from sparkfusion.plan.feed_scans import feeds_read
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.wire import decode

StageStatus = Literal["waiting", "running", "finished", "skipped"]
HEAD_STAGE: StageId = 0


@dataclass(frozen=True)
class StageWork:
    """A stage as planned. `words` is computed when it is first read, because it decodes the stage's plan."""

    stage: StageId
    graph: StageGraph = field(repr=False)

    @cached_property
    def words(self) -> str:
        if self.stage == HEAD_STAGE:
            return describe_head(self.graph.head, self.graph)
        return describe_stage(self.graph.stage(self.stage), self.graph)

    @cached_property
    def feeds(self) -> tuple[FeedId, ...]:
        """The feeds that it reads."""
        return feeds_read(decode(self.graph.stage(self.stage).plan)) if self.stage != HEAD_STAGE else ()

    @property
    def producers(self) -> tuple[StageId, ...]:
        inputs = self.graph.head.inputs if self.stage == HEAD_STAGE else self.graph.stage(self.stage).inputs
        return tuple(self.graph.exchange(exchange).producer for exchange in inputs)

    @property
    def scan_bytes(self) -> int:
        return 0 if self.stage == HEAD_STAGE else self.graph.stage(self.stage).scan_bytes


@dataclass(frozen=True)
class StageProgress:
    """One stage at one moment. Stage 0 is the head.

    Attributes:
        tasks: the number of its tasks; until it starts, the planned number.
        rows, bytes: the output of its finished tasks.
        failed_attempts: all failed attempts, also those that were retried.
        started_at: when its first tasks were ordered. `busy_since`: when the first one got a slot, if the runner
            reports that.
        finished_tasks, running_tasks: sets of task numbers, as bits: task 3 is `1 << 3`. A stage may have thousands of
            tasks, and a set is copied with each event.
        work: the stage as planned; None if the event of the plan had no graph.
    """

    stage: StageId
    status: StageStatus = "waiting"
    tasks: int = 0
    rows: int = 0
    bytes: int = 0
    failed_attempts: int = 0
    started_at: float | None = None
    busy_since: float | None = None
    ended_at: float | None = None
    finished_tasks: int = 0
    running_tasks: int = 0
    work: StageWork | None = field(default=None, repr=False)

    @property
    def done(self) -> int:
        """How many tasks are done. A task that ran twice counts once."""
        return self.finished_tasks.bit_count()

    @property
    def running(self) -> int:
        """How many tasks run now, as far as the runner reports it. Spark does not, for tasks on its executors."""
        return self.running_tasks.bit_count()

    @property
    def doing(self) -> str:
        """What it does, in plain words."""
        return self.work.words if self.work is not None else ""

    @property
    def fraction(self) -> float:
        """The part of its tasks that is done, from 0 to 1."""
        return 1.0 if self.status == "finished" else self.done / self.tasks if self.tasks else 0.0

    def seconds_left(self, now: float) -> float | None:
        """The estimated seconds until it ends, if its other tasks take as long as those that are done. None if none is
        done."""
        since = self.started_at if self.busy_since is None else self.busy_since
        if self.status != "running" or since is None or not 0.0 < self.fraction <= 1.0:
            return None
        return max(0.0, now - since) * (1.0 - self.fraction) / self.fraction

    # ---- changes by events

    def start(self, tasks: int, at: float) -> StageProgress:
        """The stage after its start. A stage may start again, if its output was lost."""
        begun = at if self.started_at is None else self.started_at
        return replace(self, status="running", tasks=tasks, started_at=begun)

    def run_task(self, task: int, at: float) -> StageProgress:
        since = at if self.busy_since is None else self.busy_since
        return replace(self, running_tasks=self.running_tasks | 1 << task, busy_since=since)

    def finish_task(self, task: int, rows: int, size: int) -> StageProgress:
        running = self.running_tasks & ~(1 << task)
        if self.finished_tasks >> task & 1:
            return replace(self, running_tasks=running)
        finished = self.finished_tasks | 1 << task
        return replace(
            self, finished_tasks=finished, running_tasks=running, rows=self.rows + rows, bytes=self.bytes + size
        )

    def fail_task(self, task: int) -> StageProgress:
        running = self.running_tasks & ~(1 << task)
        return replace(self, running_tasks=running, failed_attempts=self.failed_attempts + 1)

    def finish(self, at: float) -> StageProgress:
        return replace(self, status="finished", running_tasks=0, ended_at=at)

    def skip(self, at: float) -> StageProgress:
        """The stage as skipped: it is not run, or not to its end, so its tasks do not count."""
        return StageProgress(self.stage, "skipped", ended_at=at, work=self.work)
