"""What travels to executors and back. Plain data, picklable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparkfusion.errors import SparkfusionError
from sparkfusion.ids import ExchangeId, StageId, TaskKey
from sparkfusion.worker.task import TaskInput, TaskReport, TaskSpec


@dataclass(frozen=True)
class ToFiles:
    """Frames stay in files of a directory that every task can read."""

    directory: str


@dataclass(frozen=True)
class ToRows:
    """Frames leave as rows, together with the answer; `keyed`, for a shuffle: each after the partition it goes to."""

    keyed: bool


Destination = ToFiles | ToRows


@dataclass(frozen=True)
class StageOrder:
    """What all tasks of a Spark job have in common; it travels once, in the closure.

    Attributes:
        attempts: how often Spark tries a task.
        home: a directory of the query that this machine's driver removes; empty where executors are elsewhere.
        memory_home: the same, in memory-backed storage.
    """

    options: Mapping[str, str]
    destination: Destination
    attempts: int
    home: str
    memory_home: str
    compression: str


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
class SparkTask:
    """One task. `memory_limit` 0: the executor's machine decides."""

    key: TaskKey
    plan: bytes
    output: ExchangeId
    outputs: int
    inputs: tuple[TaskInput, ...]
    rows: tuple[RowInput, ...]
    memory_limit: int
    memory_budget: int

    def spec(self, order: StageOrder) -> TaskSpec:
        return TaskSpec(
            key=self.key,
            plan=self.plan,
            inputs=self.inputs,
            outputs=self.outputs,
            options=order.options,
            memory_limit=self.memory_limit,
            spill_directory="",
        )


@dataclass(frozen=True)
class SparkAnswer:
    """What comes back: a report, or an error that Spark shall not try again."""

    key: TaskKey
    host_attempt: int
    report: TaskReport | None = None
    error: SparkfusionError | None = None
