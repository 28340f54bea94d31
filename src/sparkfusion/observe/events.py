"""The events of a query. Progress, logs and tests subscribe to the same events."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.feed.rejected import RejectedLine
from sparkfusion.ids import QueryId, StageId, TaskKey
from sparkfusion.plan.stage import StageGraph
from sparkfusion.worker.task import TaskReport


@dataclass(frozen=True)
class Event:
    query: QueryId
    at: float = field(default_factory=time.time, kw_only=True, compare=False)


@dataclass(frozen=True)
class QueryPlanned(Event):
    """The query is planned. `reason` says why it is not distributed; then there are no stages and no tasks. `text`: the
    SQL that the user wrote; empty if the query was made by methods of a DataFrame."""

    stages: int
    tasks: int
    reason: str | None
    seconds: float
    text: str = ""
    graph: StageGraph | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class QueryRestarted(Event):
    """A task of several partitions ran out of memory, so the query runs again with these stages and tasks. The consumer
    had no rows yet. `seconds`: how long the second planning took."""

    stages: int
    tasks: int
    reason: str
    seconds: float
    graph: StageGraph | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class QueryNotDistributed(Event):
    """A query reads enough to be distributed, but cannot be. `count`: how many queries of the session were not
    distributed for this reason."""

    reason: str
    count: int


@dataclass(frozen=True)
class JoinDecided(Event):
    """The exact size of a join's build side is known, so the runner has decided how the join of a stage runs.

    `absorbed`: the stage of the probe side, if it now runs as a part of this stage.
    """

    stage: StageId
    reason: str
    absorbed: StageId | None = None


@dataclass(frozen=True)
class KeySetDecided(Event):
    """The key set that a stage computed is complete, so the runner has decided whether it reduces scans."""

    stage: StageId
    reason: str
    used: bool


@dataclass(frozen=True)
class SkewDecided(Event):
    """A stage reads a shuffle with partitions much larger than the others. `split`: several tasks read parts of
    them."""

    stage: StageId
    reason: str
    split: bool


@dataclass(frozen=True)
class StageSkipped(Event):
    """A stage is not run, or not to its end, because it certainly returns no rows or its rows are not needed."""

    stage: StageId
    reason: str


@dataclass(frozen=True)
class StageStarted(Event):
    stage: StageId
    tasks: int


@dataclass(frozen=True)
class TaskStarted(Event):
    """The coordinator has ordered an attempt, which may have to wait for a slot."""

    key: TaskKey


@dataclass(frozen=True)
class TaskRunning(Event):
    """An attempt has a slot and begins to run; `worker` as in `TaskFinished`. There is no such event for tasks on
    Spark's executors."""

    key: TaskKey
    worker: str


@dataclass(frozen=True)
class TaskFinished(Event):
    """A task is done. `earlier_attempts` counts attempts before it that had no event of their own.

    `worker`: the address of the worker that ran it, or the name of the machine on Spark; empty if it ran in the
    coordinator's process. `started_at`: when it began to run, by the coordinator's clock; it ran for `seconds`.
    """

    key: TaskKey
    rows: int
    bytes: int
    seconds: float
    earlier_attempts: int = 0
    worker: str = ""
    started_at: float = 0.0


@dataclass(frozen=True)
class TaskFailed(Event):
    """One attempt failed; `retried` says whether another one follows.

    `worker` is None if it is not known where it ran: Spark reports that only for attempts that succeed. Then
    `started_at` is when the attempt was ordered.
    """

    key: TaskKey
    message: str
    retried: bool
    worker: str | None = None
    started_at: float = 0.0


@dataclass(frozen=True)
class StageFinished(Event):
    stage: StageId
    rows: int
    bytes: int


@dataclass(frozen=True)
class FeedProgress(Event):
    """The state of a feed: units found, given to tasks, and read. Emitted a few times per second at most."""

    table: str
    feed: int
    found: int
    handed: int
    done: int
    replayed: int
    discovering: bool


@dataclass(frozen=True)
class RowsRejected(Event):
    """A query has finished, and skipped lines of a table that cannot be read. `first` holds the first few."""

    table: str
    count: int
    first: tuple[RejectedLine, ...]


@dataclass(frozen=True)
class Measured:
    """The measurements of a distributed query at its end: the stages as they ran, and reports of tasks and feeds."""

    graph: StageGraph
    reports: tuple[TaskReport, ...]
    feeds: tuple[FeedStats, ...]


@dataclass(frozen=True)
class QueryFinished(Event):
    """All rows were given to the consumer. `measured` is None if the query was not distributed."""

    rows: int
    seconds: float
    measured: Measured | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class QueryFailed(Event):
    """The query failed or was cancelled. `measured`: its measurements until then."""

    message: str
    cancelled: bool
    measured: Measured | None = field(default=None, repr=False, compare=False)


Subscriber = Callable[[Event], None]
"""A function that is called with events, from several threads, possibly at the same time, even for one query. A
subscriber that keeps state needs a lock. It must return quickly and must not raise."""
