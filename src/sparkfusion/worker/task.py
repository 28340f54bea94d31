"""What travels to a worker and back. Plain data: picklable, comparable, without a live object in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkfusion.exchange.manifest import Manifest
from sparkfusion.feed.rejected import Rejected
from sparkfusion.ids import ExchangeId, TaskKey
from sparkfusion.plan.sources import SourceFile
from sparkfusion.worker.units import FeedInput


@dataclass(frozen=True)
class TaskInput:
    """One group of an exchange that a task reads: a partition of a shuffle, else what one producer task made."""

    exchange: ExchangeId
    group: int
    files: tuple[SourceFile, ...]


@dataclass(frozen=True)
class TaskSpec:
    """Everything one attempt needs.

    Attributes:
        plan: the isolated plan, encoded by DataFusion, with placeholders for its inputs.
        inputs: what the placeholders stand for.
        outputs: how many partitions the plan's root has: a shuffle's partitions, else 1.
        options: every `datafusion.*` option of the session that planned it.
        memory_limit: bytes before DataFusion spills.
        spill_directory: where it spills to; empty for the system's temporary directory.
        trust_python: whether Python functions inside the plan may be unpickled.
        feed: the feed whose units the task reads, if it does.
    """

    key: TaskKey
    plan: bytes
    inputs: tuple[TaskInput, ...]
    outputs: int
    options: Mapping[str, str]
    memory_limit: int
    spill_directory: str
    trust_python: bool = True
    feed: FeedInput | None = None


@dataclass(frozen=True)
class OperatorMetrics:
    """What one operator of one task did. `depth` is its place in the plan's tree."""

    name: str
    depth: int
    rows: int | None
    compute_seconds: float | None
    spilled_bytes: int


@dataclass(frozen=True)
class Fetched:
    """What of one exchange had to be brought from other workers for a task."""

    exchange: ExchangeId
    bytes: int
    messages: int
    seconds: float


@dataclass(frozen=True)
class TaskReport:
    """What a finished attempt says of itself.

    Attributes:
        earlier_attempts: how many attempts at this task its host made before: failed, lost or overtaken.
        recomputed_inputs: how many producer tasks the host had to run again, because their frames were lost.
        units: how many work units it read.
        fetched: what came from other workers before it ran.
        rejected: lines of its table that its reader left out.
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
