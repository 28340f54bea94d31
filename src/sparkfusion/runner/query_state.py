"""The state of a running query, as the coordinator's machine has it. Data only: `machine.transition` makes the next
one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.ids import ExchangeId, QueryId, SourceFile, StageId
from sparkfusion.plan.isolate import Partitions
from sparkfusion.plan.stage import ExchangeKind, StageGraph

HEAD: StageId = 0
QueryOutcome = Literal["finished", "failed", "cancelled"]


@dataclass(frozen=True)
class Policy:
    retries: int = 3
    worker_losses: int = 3
    bytes_per_partition: int = 16 * 1024 * 1024
    merge_small_partitions: bool = True
    adaptive_broadcast_bytes: int = 0
    key_set_bytes: int = 1 << 50
    skew_bytes: int = 0
    skip_empty_stages: bool = False
    swap_factor: int = 0
    unsplit: str = ""
    """Why partitions cannot be split here, whatever their size."""
    task_memory: int = 1 << 50
    max_plan_bytes: int = 1 << 50


@dataclass(frozen=True)
class TaskState:
    attempt: int = 0
    running: bool = False
    failures: int = 0
    crashes: int = 0
    moves: int = 0
    worker_losses: int = 0
    manifest: Manifest | None = None

    @property
    def is_idle(self) -> bool:
        return self.manifest is None and not self.running


@dataclass(frozen=True)
class Portion:
    """The rows of a shuffle's partition that a task reads if other tasks read the rest: those that the producer tasks
    from `first` to before `last` wrote. So a producer task that is run again writes the rows of the same portion."""

    exchange: ExchangeId
    first: int
    last: int


@dataclass(frozen=True)
class StageState:
    """The state of one stage. `layout` lists the partitions of each task; it is decided when the stage first starts.
    `apart`: they are kept apart, so a task has as many outputs if it does not write a shuffle. `portions`: for each
    task, which part of its partition it reads; empty if no partition is split. `skipped`: it was decided that nobody
    needs its rows; its tasks count as done.

    `unfinished` counts the tasks without committed output, and `idle` those of them that do not run. They are kept
    because no event may look at every task: a stage of a thousand tasks has thousands of events.
    """

    layout: tuple[Partitions, ...] = ()
    tasks: tuple[TaskState, ...] = ()
    unfinished: int = 0
    idle: int = 0
    apart: bool = False
    portions: tuple[Portion | None, ...] = ()
    skipped: bool = False

    @classmethod
    def of(
        cls, layout: tuple[Partitions, ...], *, apart: bool = False, portions: tuple[Portion | None, ...] = ()
    ) -> StageState:
        """A stage that starts now. All of its tasks are idle."""
        return cls(layout, (TaskState(),) * len(layout), len(layout), len(layout), apart, portions)

    @property
    def started(self) -> bool:
        return bool(self.layout)

    @property
    def done(self) -> bool:
        return self.started and self.unfinished == 0

    @cached_property
    def bytes_by_partition(self) -> Mapping[int, int]:
        """The committed bytes of each output partition that has any."""
        return {p: sum(file.bytes for _, file in files) for p, files in self.files_by_partition.items()}

    @cached_property
    def has_rows(self) -> bool:
        """Whether a committed file has rows."""
        return any(task.manifest is not None and task.manifest.rows > 0 for task in self.tasks)

    @cached_property
    def files_by_partition(self) -> Mapping[int, Sequence[tuple[int, FrameFile]]]:
        """The committed files of each output partition, in the order of the tasks, each with its task's number."""
        found: dict[int, list[tuple[int, FrameFile]]] = {}
        for number, task in enumerate(self.tasks):
            for file in task.manifest.files if task.manifest is not None else ():
                found.setdefault(file.partition, []).append((number, file))
        return found

    def with_task(self, index: int, task: TaskState) -> StageState:
        before = self.tasks[index]
        return StageState(
            self.layout,
            (*self.tasks[:index], task, *self.tasks[index + 1 :]),
            self.unfinished + (task.manifest is None) - (before.manifest is None),
            self.idle + task.is_idle - before.is_idle,
            self.apart,
            self.portions,
            self.skipped,
        )

    def portion_of(self, index: int) -> Portion | None:
        return self.portions[index] if self.portions else None

    def files_of_group(self, group: int) -> Sequence[FrameFile]:
        """The committed files of what is not a shuffle: of a task, or of one of its partitions if they are kept
        apart."""
        width = len(self.layout[0]) if self.apart else 1
        task, place = divmod(group, width)
        manifest = self.tasks[task].manifest if task < len(self.tasks) else None
        return [file for file in manifest.files if file.partition == place] if manifest is not None else ()

    def with_all_running(self) -> StageState:
        """The same stage after its idle tasks were started."""
        tasks = tuple(replace(task, running=True) if task.is_idle else task for task in self.tasks)
        return StageState(self.layout, tasks, self.unfinished, 0, self.apart, self.portions, self.skipped)


@dataclass(frozen=True)
class QueryState:
    query: QueryId
    graph: StageGraph
    policy: Policy = Policy()
    stages: Mapping[StageId, StageState] = field(default_factory=dict)
    outcome: QueryOutcome | None = None

    def stage(self, stage_id: StageId) -> StageState:
        return self.stages.get(stage_id, StageState())

    def manifests(self, stage_id: StageId) -> list[Manifest]:
        return [task.manifest for task in self.stage(stage_id).tasks if task.manifest is not None]

    def inputs_done(self, inputs: tuple[ExchangeId, ...]) -> bool:
        return all(self.stage(self.graph.exchange(exchange).producer).done for exchange in inputs)

    def files(self, exchange_id: ExchangeId, group: int, portion: Portion | None = None) -> tuple[SourceFile, ...]:
        """The committed files of a group: of a partition in a shuffle, or of a portion of it, otherwise of a producer
        task, or of each of its partitions."""
        exchange = self.graph.exchange(exchange_id)
        producer = self.stage(exchange.producer)
        if exchange.kind is not ExchangeKind.SHUFFLE:
            found = producer.files_of_group(group)
        elif portion is None or portion.exchange != exchange_id:
            found = [file for _, file in producer.files_by_partition.get(group, ())]
        else:
            written = producer.files_by_partition.get(group, ())
            found = [file for task, file in written if portion.first <= task < portion.last]
        return tuple(SourceFile(file.path, file.bytes) for file in found)
