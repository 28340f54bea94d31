"""The contract between a session and the runner of its queries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa

from sparkfusion.config import Settings
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.feed.feed import FeedDeclaration
from sparkfusion.ids import QueryId, TableId
from sparkfusion.observe.events import Subscriber
from sparkfusion.plan.stage import StageGraph
from sparkfusion.worker.copy import CopyOrder
from sparkfusion.worker.task import TaskReport
from sparkfusion.worker.task_context import PrepareContext


@dataclass(frozen=True)
class QueryJob:
    """A planned query, ready to run.

    Attributes:
        options: every `datafusion.*` option that planned it.
        emit: receives every event of the query, from the runner's threads.
        prepare: called with each task's context in this process, to add what is not sent with the task.
        recipe: returns the same for tasks in other processes, as a picklable function. Raises if that is not possible.
        writes: tasks whose rows would go to the consumer write them to files instead.
        feeds: the feeds that it scans.
        keeps: objects that own tables and files that it reads; they may be released when it has ended.
        text: the SQL that the user wrote, for people who watch the query run; may be empty.
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
    text: str = ""


@dataclass(frozen=True)
class AdoptedTable:
    """A Spark DataFrame as a table, in this many parts. `bytes` is a guess at its size; `id` is the runner's."""

    id: TableId
    schema: pa.Schema
    bytes: int
    parts: int


@dataclass(frozen=True)
class CatalogFile:
    """A Parquet file of a table, and the values of the table's partition columns as texts; None for NULL."""

    path: str
    values: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class CatalogTable:
    """A table or view of Spark's catalog, as Spark sees it at this moment.

    Attributes:
        name: as the query has it.
        schema: what Spark's rows would be as Arrow.
        dataframe: Spark's, of all its rows, for `SparkFrames.adopt`.
        files: all its files, if they are Parquet files of this machine that DataFusion may read.
        partitions: the columns whose values are not in the files; they are the last ones.
        trusts_dates: Spark takes dates and timestamps in files of other programs as they are.
        why_spark: why only Spark can read it; None if `files` are enough.
    """

    name: str
    schema: pa.Schema
    dataframe: object
    files: tuple[CatalogFile, ...] = ()
    partitions: tuple[str, ...] = ()
    trusts_dates: bool = False
    why_spark: str | None = None


@dataclass(frozen=True)
class SparkWrite:
    """How rows are written to a table of Spark's catalog. `format` is Spark's default if it is None."""

    table: str
    mode: Literal["append", "overwrite", "error", "ignore"]
    format: str | None = None
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class ListedTable:
    """A table or view in a listing of Spark's catalog."""

    catalog: str
    database: str
    name: str
    kind: str


class RunningJob(Protocol):
    """A running query. One thread calls `next_frame`. Any thread may call `close` and `cancel`, any number of times."""

    def next_frame(self) -> pa.RecordBatch | None:
        """The next frame of the head's output; None at the end. Raises the query's error."""
        ...

    def cancel(self, reason: str = ...) -> None:
        """Ask everything to stop; returns at once."""
        ...

    def close(self) -> None:
        """Stop running tasks, wait for them, and remove everything that the query made."""
        ...

    def reports(self) -> list[TaskReport]:
        """Reports of the committed tasks so far."""
        ...

    def graph(self) -> StageGraph | None:
        """The stages as they run, after what was decided so far; None if it is not distributed."""
        ...

    def feeds(self) -> list[FeedStats]:
        """How far the query's feeds are."""
        ...


class SparkCatalog(Protocol):
    """Tables of Spark's catalog. Any thread may call any method."""

    def find(self, name: tuple[str, ...]) -> CatalogTable | None:
        """What Spark finds under a name of one to three parts; None if there is no such table. Raises a `UserError` if
        Spark refuses to read it."""
        ...

    def use(self, name: tuple[str, ...]) -> None:
        """Make a database, or a catalog, the one in which Spark looks for names."""
        ...

    def tables(self, database: str | None = None) -> list[ListedTable]:
        """The tables of a database, of Spark's current one if none is named, and temporary views."""
        ...

    def exists(self, table: str) -> bool:
        """Whether there is a table or view of that name, as Spark's SQL spells it."""
        ...

    def save(self, dataframe: Any, write: SparkWrite) -> None:
        """Write a Spark DataFrame to a table, with Spark's own writer."""
        ...


class SparkFrames(Protocol):
    """Spark DataFrames as tables of queries, and the other way round."""

    @property
    def catalog(self) -> SparkCatalog:
        """Spark's own catalog."""
        ...

    @property
    def is_lazy(self) -> bool:
        """Whether `to_spark` can be used; otherwise a query runs first, and `from_rows` takes its rows."""
        ...

    def adopt(self, source: object) -> AdoptedTable:
        """Take a Spark DataFrame, or a table or view by its name, as an input of queries, or raise a `UserError`."""
        ...

    def reads_table(self, name: str, files: Collection[str], tables: Collection[TableId]) -> bool:
        """Whether a query over these files and adopted tables reads a table of the catalog, or may read it."""
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
    """Runs the tasks of queries. Planning does not know which runner is used, nor a runner what a plan means."""

    @property
    def slots(self) -> int | None:
        """How many tasks run at once, if that is not this machine's number of cores."""
        ...

    @property
    def machines(self) -> int:
        """On how many machines tasks run; the slots are divided among them. On one machine, one task may run a whole
        plan."""
        ...

    @property
    def cores_per_task(self) -> int | None:
        """How many cores each task is given by whoever schedules them; None if tasks share those of their machine."""
        ...

    def takes_wide_tasks(self, settings: Settings) -> bool:
        """Whether a task may run several partitions of a stage and give out each by itself."""
        ...

    def start(self, job: QueryJob) -> RunningJob: ...

    @property
    def spark(self) -> SparkFrames | None:
        """What only a runner on Spark can do; None if it is on something else."""
        ...

    def reaches(self, directory: Path) -> bool:
        """Whether tasks can write to this directory of the caller, so that the caller sees the files."""
        ...

    def shares_files(self, settings: Settings) -> bool:
        """Whether tasks can read files that this process writes to its temporary directory, or to `store_dir`."""
        ...

    def describe(self, settings: Settings, graph: StageGraph | None = None) -> str:
        """Where tasks of a query run and where their frames are kept, in a few words; empty if there is nothing to
        say."""
        ...

    def close(self) -> None: ...
