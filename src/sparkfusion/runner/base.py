"""The contract between a session and whoever runs its queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from sparkfusion.config import Settings
from sparkfusion.feed.declare import FeedDeclaration
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.ids import QueryId, TableId
from sparkfusion.observe.events import Subscriber
from sparkfusion.plan.stage import StageGraph
from sparkfusion.worker.copy import CopyOrder
from sparkfusion.worker.session import PrepareContext
from sparkfusion.worker.task import TaskReport


@dataclass(frozen=True)
class QueryJob:
    """A planned query, ready to run.

    Attributes:
        options: every `datafusion.*` option that planned it.
        emit: told of everything that happens, from the runner's threads.
        prepare: called with each task's context in this process, for what cannot travel as data.
        recipe: gives the same for tasks in other processes, picklable; raises where that cannot be.
        writes: tasks whose rows would go to the reader write them to files instead.
        feeds: the fed tables that it scans.
        keeps: what owns tables and files that it reads; they may go when it has ended.
    """

    query: QueryId
    graph: StageGraph
    settings: Settings
    options: Mapping[str, str]
    emit: Subscriber
    prepare: PrepareContext | None = None
    recipe: Callable[[], PrepareContext | None] = lambda: None
    writes: CopyOrder | None = None
    feeds: tuple[FeedDeclaration, ...] = ()
    keeps: tuple[object, ...] = ()


@dataclass(frozen=True)
class HostTable:
    """A table whose rows the runner brings, in so many parts. `bytes` is a guess at its size; `id` is the runner's."""

    id: TableId
    schema: pa.Schema
    bytes: int
    parts: int


class RunningJob(Protocol):
    """A query under way. `next_frame` is called by one thread; `close` and `cancel` by any, any number of times."""

    def next_frame(self) -> pa.RecordBatch | None:
        """The next frame of the head's output; None at the end. Raises the query's error."""
        ...

    def cancel(self, reason: str = ...) -> None:
        """Ask everything to stop; returns at once."""
        ...

    def close(self) -> None:
        """Stop what still runs, wait for it, remove everything the query made."""
        ...

    def reports(self) -> list[TaskReport]:
        """Reports of the committed tasks so far."""
        ...

    def feeds(self) -> list[FeedStats]:
        """How far the query's feeds are."""
        ...


class SparkFrames(Protocol):
    """Spark DataFrames as tables of queries, and the other way round."""

    def adopt(self, source: object) -> HostTable:
        """Take a Spark DataFrame, or a table or view by its name, as an input of queries, or raise a `UserError`."""
        ...

    def release(self, table: TableId) -> None:
        """Forget a table that was adopted: no query will read it any more. From any thread."""
        ...

    def to_spark(self, job: QueryJob, schema: pa.Schema) -> Any:
        """A query as a Spark DataFrame that runs when Spark asks for it."""
        ...

    def from_rows(self, rows: pa.Table) -> Any:
        """Rows as a Spark DataFrame."""
        ...


class Runner(Protocol):
    """Hosts tasks. Planning never learns which runner is used, and no runner learns what a plan means."""

    @property
    def name(self) -> str: ...

    @property
    def slots(self) -> int | None:
        """How many tasks run at once, where that is not this machine's number of cores."""
        ...

    def start(self, job: QueryJob) -> RunningJob: ...

    @property
    def spark(self) -> SparkFrames | None:
        """What only a runner on Spark can do; None if it is on something else."""
        ...

    def reaches(self, directory: Path) -> bool:
        """Whether tasks can write to this directory of the caller's, so that the caller sees it."""
        ...

    def shares_files(self, settings: Settings) -> bool:
        """Whether tasks can read what this process writes to its temporary or chosen directory."""
        ...

    def describe(self, settings: Settings) -> str:
        """Where tasks run and where their frames are, in a few words; empty where there is nothing to say."""
        ...

    def close(self) -> None: ...
