"""The contract between a session and the runner of its queries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa

from sparkfusion.config import Settings
from sparkfusion.errors import SparkfusionError
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.feed.feed import FeedDeclaration
from sparkfusion.ids import QueryId, TableId
from sparkfusion.observe.events import Subscriber
from sparkfusion.plan.stage import StageGraph
from sparkfusion.worker.copy import CopySpec
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
        ended: called once when the runner has ended the query and removed what it made; None if it did not fail. It
            must not raise.
    """

    query: QueryId
    graph: StageGraph
    settings: Settings
    options: Mapping[str, str]
    emit: Subscriber
    prepare: PrepareContext | None = None
    recipe: Callable[[], PrepareContext | None] = lambda: None
    writes: CopySpec | None = None
    feeds: tuple[FeedDeclaration, ...] = ()
    keeps: tuple[object, ...] = ()
    text: str = ""
    ended: Callable[[SparkfusionError | None], None] = lambda error: None


@dataclass(frozen=True)
class AdoptedTable:
    """A Spark DataFrame as a table, in this many parts. `bytes` is a guess at its size; `id` is the runner's."""

    id: TableId
    schema: pa.Schema
    bytes: int
    parts: int


@dataclass(frozen=True)
class CatalogFile:
    """A Parquet file of a table.

    Attributes:
        path: of this machine, or a URL.
        values: of the table's partition columns, as texts; None for NULL.
        size, modified: bytes, and when it was written, for files that are not on this machine.
    """

    path: str
    values: tuple[str | None, ...] = ()
    size: int = 0
    modified: int = 0


@dataclass(frozen=True)
class SparkDates:
    """How Spark reads dates and timestamps of Parquet files now.

    Attributes:
        trusts_dates: Spark does not convert dates in files of other programs. `trusts_int96`: nor INT96 timestamps.
        why_int96: why Spark reads INT96 timestamps in its own way; None if it reads them as instants.
    """

    trusts_dates: bool = False
    trusts_int96: bool = False
    why_int96: str | None = None


@dataclass(frozen=True)
class CatalogTable:
    """A table or view of Spark's catalog, as Spark sees it at this moment.

    Attributes:
        name: as the query has it.
        schema: what Spark's rows would be as Arrow.
        dataframe: Spark's DataFrame of all its rows, for `SparkDataFrames.adopt`.
        files: all its files, if they are Parquet files that DataFusion may read: of this machine, or all of them in the
            same bucket of an object store.
        partitions: the columns whose values are not in the files.
        dates: how Spark reads dates and timestamps in the files.
        why_spark: why only Spark can read it; None if `files` are enough.
        origin: the version of the table that the files are, in words; empty if it has none.
    """

    name: str
    schema: pa.Schema
    dataframe: object
    files: tuple[CatalogFile, ...] = ()
    partitions: tuple[str, ...] = ()
    dates: SparkDates = SparkDates()
    why_spark: str | None = None
    origin: str = ""


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

    def read_end(self, file: CatalogFile, count: int) -> bytes:
        """The last bytes of a file that is not on this machine, read by Spark's driver. Any thread may call it."""
        ...

    def name_dataframes(self, dataframes: Mapping[str, tuple[str, Any]]) -> AbstractContextManager[None]:
        """As long as the `with` lasts, let these names mean Spark DataFrames, each with words that show it to people.
        The names must be used nowhere else."""
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


SparkAnswers = Callable[[str], pa.Table]
"""Spark SQL's own answer to the text of a query."""


class SparkDataFrames(Protocol):
    """Spark DataFrames as tables of queries, and the other way round."""

    def configuration(self) -> Mapping[str, str]:
        """Spark's configuration, as the session sees it."""
        ...

    @property
    def catalog(self) -> SparkCatalog:
        """Spark's own catalog."""
        ...

    def takes(self, graph: StageGraph) -> bool:
        """Whether `to_spark` can be used for a query; otherwise it runs first, and `from_rows` takes its rows."""
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
        """A query as a Spark DataFrame. It runs when Spark asks for it, or now if Spark can keep its rows."""
        ...

    def from_rows(self, rows: pa.Table) -> Any:
        """Rows as a Spark DataFrame."""
        ...

    def temporary_views(self, tables: Mapping[str, str]) -> AbstractContextManager[SparkAnswers]:
        """Ask Spark SQL itself, for a comparison. As long as the `with` lasts, these names are temporary views of the
        Spark session, over URLs of Parquet files. Raises a `UserError` if it has temporary views of these names."""
        ...


class Runner(Protocol):
    """Runs the tasks of queries. Planning does not know which runner is used, and runners do not look into plans."""

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
        """How many cores the scheduler can give a task; None if tasks share the cores of their machine."""
        ...

    @property
    def machine_memory(self) -> int:
        """Bytes that the tasks on one machine have together, if that is not as in this process; otherwise 0."""
        ...

    def takes_wide_tasks(self, settings: Settings) -> bool:
        """Whether a task may run several partitions of a stage and return each of them separately."""
        ...

    def start(self, job: QueryJob) -> RunningJob: ...

    @property
    def spark(self) -> SparkDataFrames | None:
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
