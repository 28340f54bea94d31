"""The state of a running query, as the coordinator's machine has it. Data only: `machine.transition` makes the next
one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sparkfusion.exchange.manifest import Manifest
from sparkfusion.ids import ExchangeId, QueryId, SourceFile, StageId
from sparkfusion.plan.isolate import Partitions
from sparkfusion.plan.stage import ExchangeKind, StageGraph

HEAD: StageId = 0
Outcome = Literal["finished", "failed", "cancelled"]


@dataclass(frozen=True)
class Policy:
    retries: int = 3
    worker_losses: int = 3
    bytes_per_partition: int = 16 * 1024 * 1024
    merge_small_partitions: bool = True
    adaptive_broadcast_bytes: int = 0
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


@dataclass(frozen=True)
class StageState:
    """The state of one stage. `layout` lists the partitions of each task; it is decided when the stage first starts."""

    layout: tuple[Partitions, ...] = ()
    tasks: tuple[TaskState, ...] = ()

    @property
    def started(self) -> bool:
        return bool(self.layout)

    @property
    def done(self) -> bool:
        return self.started and all(task.manifest is not None for task in self.tasks)


@dataclass(frozen=True)
class QueryState:
    query: QueryId
    graph: StageGraph
    policy: Policy = Policy()
    stages: Mapping[StageId, StageState] = field(default_factory=dict)
    outcome: Outcome | None = None

    def stage(self, stage_id: StageId) -> StageState:
        return self.stages.get(stage_id, StageState())

    def manifests(self, stage_id: StageId) -> list[Manifest]:
        return [task.manifest for task in self.stage(stage_id).tasks if task.manifest is not None]

    def inputs_done(self, inputs: tuple[ExchangeId, ...]) -> bool:
        return all(self.stage(self.graph.exchange(exchange).producer).done for exchange in inputs)

    def files(self, exchange_id: ExchangeId, group: int) -> tuple[SourceFile, ...]:
        """The committed files of a group: of a partition in a shuffle, otherwise of a producer task."""
        exchange = self.graph.exchange(exchange_id)
        if exchange.kind is ExchangeKind.SHUFFLE:
            found = [f for manifest in self.manifests(exchange.producer) for f in manifest.of_partition(group)]
        else:
            tasks = self.stage(exchange.producer).tasks
            manifest = tasks[group].manifest if group < len(tasks) else None
            found = list(manifest.files) if manifest is not None else []
        return tuple(SourceFile(file.path, file.bytes) for file in found)
