"""What is sent to a worker and back. Plain data: picklable, comparable, without live objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sparkfusion.config import task_share
from sparkfusion.exchange.manifest import Manifest
from sparkfusion.feed.rejected import Rejected
from sparkfusion.ids import ExchangeId, SourceFile, TaskKey
from sparkfusion.worker.copy import CopySpec
from sparkfusion.worker.unit_files import FeedInput

Destination = Literal["store", "consumer"]


@dataclass(frozen=True)
class TaskInput:
    """One group of an exchange that a task reads: a shuffle's partition, otherwise one output of a producer task."""

    exchange: ExchangeId
    group: int
    files: tuple[SourceFile, ...]


@dataclass(frozen=True)
class TaskOrder:
    """One attempt at a task: the same data on every runner. A runner only decides where it is carried out.

    Attributes:
        plan: the isolated plan, encoded by DataFusion, with placeholders for its inputs.
        inputs: what the placeholders stand for. On workers their paths are `<address>/<name>`, with names from the
            reports of those workers.
        outputs: how many partitions the plan's root has: a shuffle's partitions, else those that are kept apart.
        options: every `datafusion.*` option of the session that planned it.
        destination: where rows go: to the store of the process that runs the task, or straight to the consumer.
        writes: the task's rows are written to files of the user's instead.
        compression: of frames in the store.
        memory_limit: bytes before DataFusion spills; 0 leaves it to the machine that runs the task.
        partitions: how many partitions the plan runs at once. A task with several has the memory of as many slots.
            Beyond it, it fails: it could hang if it spilled (docs/upstream-defects.md).
        store_memory: bytes of that machine's memory for frames of the query; -1 leaves it to the machine.
        feed: the feed whose units the task reads, if it does.
        first: the offset in its feed's ledger that the task begins at.
        reader, recipe: pickled functions: the feed's reader, and what makes the session's object stores.
        here: the worker's address as the coordinator knows it: inputs that begin with it are its own files. Empty in
            the coordinator's own process, where inputs and outputs are files of this machine.
        shared: exchanges that other tasks on the worker read too (broadcasts), so they are brought there once.
        patience: seconds of silence after which a worker that inputs come from counts as lost.
        extensions: settings for extensions of the worker.
    """

    key: TaskKey
    plan: bytes
    inputs: tuple[TaskInput, ...] = ()
    outputs: int = 1
    options: Mapping[str, str] = field(default_factory=dict)
    destination: Destination = "store"
    writes: CopySpec | None = None
    compression: str = "none"
    memory_limit: int = 0
    partitions: int = 1
    store_memory: int = -1
    feed: FeedInput | None = None
    first: int = 0
    reader: bytes | None = None
    recipe: bytes | None = None
    here: str = ""
    shared: tuple[ExchangeId, ...] = ()
    patience: float = 10.0
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def spills(self) -> bool:
        """Whether the task spills beyond its memory."""
        return self.partitions == 1

    def memory_on(self, slots: int, share: int | None = None) -> int:
        """Bytes before DataFusion spills, on a machine with this many slots. `share`: of one slot, by default a fair
        one."""
        return self.memory_limit or task_share(self.partitions, slots, share)


@dataclass(frozen=True)
class OperatorMetrics:
    """What one operator of one task did. `depth` is its depth in the plan's tree."""

    name: str
    depth: int
    rows: int | None
    compute_seconds: float | None
    spilled_bytes: int


@dataclass(frozen=True)
class Fetched:
    """What a task had to fetch of one exchange from other workers."""

    exchange: ExchangeId
    bytes: int
    messages: int
    seconds: float


@dataclass(frozen=True)
class TaskReport:
    """What a finished attempt reports.

    Attributes:
        earlier_attempts: how many attempts at this task Spark made before this one: failed, lost or overtaken.
        recomputed_inputs: how many producer tasks Spark had to run again because their frames were lost.
        units: how many work units it read.
        fetched: what was fetched from other workers before it ran.
        rejected: lines of its table that were skipped because they cannot be read.
        started_at: when it started to run, by the clock of the machine that ran it.
        worker: the address of the worker, or the name of the machine on Spark; empty in the coordinator's process.
    """

    key: TaskKey
    manifest: Manifest
    rows: int
    seconds: float
    operators: tuple[OperatorMetrics, ...] = field(default=(), compare=False)
    earlier_attempts: int = 0
    recomputed_inputs: int = 0
    units: int = 0
    fetched: tuple[Fetched, ...] = field(default=(), compare=False)
    rejected: Rejected | None = None
    started_at: float = field(default=0.0, compare=False)
    worker: str = field(default="", compare=False)
