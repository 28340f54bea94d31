"""What travels to executors and back. Plain data, picklable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.accumulators import Accumulator

from sparkfusion.errors import SparkfusionError
from sparkfusion.feed.address import FeedAddress
from sparkfusion.feed.provider import Reader
from sparkfusion.ids import ExchangeId, StageId, TaskKey
from sparkfusion.plan.feeds import FeedId
from sparkfusion.plan.tables import TableId
from sparkfusion.worker.copy import CopyOrder
from sparkfusion.worker.run_task import PrepareContext
from sparkfusion.worker.task import TaskInput, TaskReport, TaskSpec
from sparkfusion.worker.units import FeedInput

_TABLE_MARK = b"SFtable"


@dataclass(frozen=True)
class ToFiles:
    """Frames stay in files of a directory that every task can read."""

    directory: str


@dataclass(frozen=True)
class ToUrl:
    """Frames are uploaded to `frames_url`, which every task reaches, and downloaded by whoever reads them."""


@dataclass(frozen=True)
class ToRows:
    """Frames leave as rows, together with the answer; `keyed`, for a shuffle: each after the partition it goes to."""

    keyed: bool


@dataclass(frozen=True)
class InPlace:
    """Frames stay in the task's own workplace: it makes something else of them."""


Destination = ToFiles | ToUrl | ToRows | InPlace


@dataclass(frozen=True)
class StageOrder:
    """What all tasks of a Spark job have in common; it travels once, in the closure.

    Attributes:
        attempts: how often Spark tries a task.
        home: a directory of the query that this machine's driver removes; empty where executors are elsewhere.
        memory_home: the same, in memory-backed storage.
        frames_url: where the frames of inputs are, if they have to be downloaded; may hold secrets.
        prepare: makes what a task's context needs and cannot travel.
        writes: tasks write their rows out to files of the user's.
        answers_errors: an error that no retry would mend comes back as data; else every error is raised, for Spark.
        news: where answers go as well, so that the driver has them before the job ends.
        feeds: where tasks ask for work units, if the query reads feeds.
        readers: what makes rows of units that are no files.
    """

    options: Mapping[str, str]
    destination: Destination
    attempts: int
    home: str
    memory_home: str
    compression: str
    frames_url: str = field(default="", repr=False)
    prepare: PrepareContext | None = None
    writes: CopyOrder | None = None
    answers_errors: bool = True
    news: Accumulator[tuple[bytes, ...]] | None = None
    feeds: FeedAddress | None = None
    readers: Mapping[FeedId, Reader] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A producer task whose output is read: the committed attempt, in our count and, where it is known, in Spark's."""

    task: int
    attempt: int
    host_attempt: int | None = None


@dataclass(frozen=True)
class RowInput:
    """Groups of an exchange that come as rows. `shuffled`: a group is a partition, else what one source made."""

    exchange: ExchangeId
    producer: StageId
    shuffled: bool
    repeatable: bool
    groups: tuple[int, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class TableInput:
    """Parts of a registered DataFrame; its rows come as record-batch messages of this schema, each after its mark."""

    table: TableId
    parts: tuple[int, ...]
    schema: bytes


def table_mark(table: TableId) -> bytes:
    return _TABLE_MARK + str(table).encode()


def marked_table(record: bytes) -> TableId | None:
    """The table whose rows follow the record; None if the record is a task."""
    return int(record.removeprefix(_TABLE_MARK)) if record.startswith(_TABLE_MARK) else None


@dataclass(frozen=True)
class SparkTask:
    """One task. `memory_limit` 0: the executor's machine decides. `streams`: rows of a fed task go to the reader."""

    key: TaskKey
    plan: bytes
    output: ExchangeId
    outputs: int
    inputs: tuple[TaskInput, ...]
    rows: tuple[RowInput, ...]
    tables: tuple[TableInput, ...]
    memory_limit: int
    memory_budget: int
    feed: FeedInput | None = None
    streams: bool = False

    def spec(self, order: StageOrder) -> TaskSpec:
        return TaskSpec(
            key=self.key,
            plan=self.plan,
            inputs=self.inputs,
            outputs=self.outputs,
            options=order.options,
            memory_limit=self.memory_limit,
            spill_directory="",
            feed=self.feed,
        )


@dataclass(frozen=True)
class SparkAnswer:
    """What comes back: a report, or an error that Spark shall not try again."""

    key: TaskKey
    host_attempt: int
    report: TaskReport | None = None
    error: SparkfusionError | None = None
