"""What is sent to executors and back: orders and answers as on every runner, and how Spark brings them their rows."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sparkfusion.errors import InternalError, SparkfusionError
from sparkfusion.ids import ExchangeId, SourceFile, StageId, TableId, TaskKey
from sparkfusion.runner.spark.feed_address import FeedAddress, MailAddress
from sparkfusion.transport.codec import (
    error_of,
    key_of,
    order_of,
    pack_error,
    pack_key,
    pack_order,
    pack_report,
    report_of,
)
from sparkfusion.transport.message import unpack
from sparkfusion.worker.task import TaskOrder, TaskReport

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

_TABLE_MARK = b"SFtable"
_KEY = struct.Struct(">q")

TaskFunction = Callable[[Iterable[bytes]], Iterator[bytes]]
"""What Spark calls for each task: with the rows that the task reads, to get the rows that it returns."""


@dataclass(frozen=True)
class ToFiles:
    """Frames stay in files of a directory that every task can read."""

    directory: str


@dataclass(frozen=True)
class ToUrl:
    """Frames are uploaded to `frames_url`, which every task reaches, and downloaded by the tasks that read them."""


@dataclass(frozen=True)
class ToRows:
    """Frames leave as rows, with the answer.

    Attributes:
        keyed: for a shuffle, each row comes after its partition's number.
        copy_bytes: a task that wrote no more than this sends its frames a second time, to where its answer goes; 0 for
            none.
    """

    keyed: bool
    copy_bytes: int = 0


def row_key(partition: int) -> bytes:
    """What comes before a row that is for this partition of a shuffle."""
    return _KEY.pack(partition)


@dataclass(frozen=True)
class InPlace:
    """Frames stay in the task's own directory: the task converts them itself."""


Outlet = ToFiles | ToUrl | ToRows | InPlace


@dataclass(frozen=True)
class CarriedInput:
    """A group of an exchange whose producer ran in the driver: the bytes of its frame files."""

    exchange: ExchangeId
    group: int
    files: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True)
class StageWiring:
    """How the tasks of one Spark job get their inputs, and where their frames go. It is sent once, in the closure.

    Attributes:
        outlet: where the tasks' frames go.
        attempts: how many attempts Spark makes at a task.
        home: a directory of the query that the driver on this machine removes; empty if executors run on other
            machines.
        memory_home: the same, in memory-backed storage.
        frames_url: where the frames of inputs are, if they have to be downloaded; may hold secrets.
        answers_errors: an error that no retry would repair comes back as data; otherwise every error is raised, for
            Spark.
        news: where answers go as well, so that the driver has them before the job ends.
        feeds: where tasks ask for work units, if the query reads feeds.
        carried: what the tasks read of stages that ran in the driver, if its files are not theirs.
    """

    outlet: Outlet
    attempts: int
    home: str
    memory_home: str
    frames_url: str = field(default="", repr=False)
    answers_errors: bool = True
    news: Accumulator[tuple[bytes, ...]] | None = None
    feeds: FeedAddress | MailAddress | None = None
    carried: tuple[CarriedInput, ...] = ()


@dataclass(frozen=True)
class ProducerAttempt:
    """A producer task whose output is read: the committed attempt, by our number and, if it is known, by Spark's."""

    task: int
    attempt: int
    spark_attempt: int | None = None


@dataclass(frozen=True)
class RowInput:
    """Groups of an exchange that come as rows: partitions if it is `shuffled`, otherwise outputs of sources."""

    exchange: ExchangeId
    producer: StageId
    shuffled: bool
    repeatable: bool
    groups: tuple[int, ...]
    sources: tuple[ProducerAttempt, ...]


@dataclass(frozen=True)
class TableInput:
    """Parts of a registered DataFrame. Its rows come as record-batch messages of this schema, each after its mark."""

    table: TableId
    parts: tuple[int, ...]
    schema: bytes


def table_mark(table: TableId) -> bytes:
    return _TABLE_MARK + str(table).encode()


def marked_table(record: bytes) -> TableId | None:
    """The table whose rows follow the record; None if the record is a task."""
    return int(record.removeprefix(_TABLE_MARK)) if record.startswith(_TABLE_MARK) else None


@dataclass(frozen=True)
class PartFile:
    """The rows of one part of a registered DataFrame, in a file of the query's store."""

    table: TableId
    part: int
    file: SourceFile


@dataclass(frozen=True)
class TaskWiring:
    """Which of a task's inputs come as rows of Spark, and the exchange that its own rows are for.

    `parts`: the files of the DataFrames that the task reads, if their rows come in files; parts without a file have no
    rows.
    """

    output: ExchangeId
    rows: tuple[RowInput, ...] = ()
    tables: tuple[TableInput, ...] = ()
    parts: tuple[PartFile, ...] | None = None


def pack_task(order: TaskOrder, wiring: TaskWiring) -> bytes:
    """A task as a record of Spark: the order as every runner sends it, and its wiring."""
    return pickle.dumps((pack_order(order), wiring))


def task_of(record: bytes) -> tuple[TaskOrder, TaskWiring]:
    message, wiring = pickle.loads(record)
    _, fields, blobs = unpack(message, len(message))
    return order_of(fields, blobs), wiring


@dataclass(frozen=True)
class SparkAnswer:
    """What comes back: a report, or an error that Spark must not retry."""

    key: TaskKey
    spark_attempt: int
    report: TaskReport | None = None
    error: SparkfusionError | None = None


def pack_answer(answer: SparkAnswer) -> bytes:
    inner = pack_report(answer.report) if answer.report is not None else pack_error(answer.error or InternalError(""))
    return pack_key("answer", answer.key, inner, spark_attempt=answer.spark_attempt)


def answer_of(data: bytes) -> SparkAnswer:
    _, fields, blobs = unpack(data, len(data))
    kind, inner, _ = unpack(blobs[0], len(blobs[0]))
    key, spark_attempt = key_of(fields), fields.integer("spark_attempt")
    if kind == "report":
        return SparkAnswer(key, spark_attempt, report=report_of(inner))
    return SparkAnswer(key, spark_attempt, error=error_of(inner))
