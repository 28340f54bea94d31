"""The stage graph: the result of the cut. Data only; every runner reads it, none changes it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from sparkfusion.ids import ExchangeId, StageId


class ExchangeKind(StrEnum):
    """How rows cross a stage border."""

    SHUFFLE = "shuffle"  # by hash: consumer task p reads partition p of every producer task
    GATHER = "gather"  # one consumer task reads all producer tasks, kept apart
    BROADCAST = "broadcast"  # every consumer task reads all producer tasks
    FORWARD = "forward"  # consumer task p reads producer task p: it has to see all rows of that task's work units


@dataclass(frozen=True)
class KeySet:
    """Marks an exchange whose rows are keys that reduce scans (`plan/key_sets.py`).

    `values`: how many different keys there are at most, without the filters of their table; None if not known. `most`:
    with more keys, scans that only decode fewer rows gain nothing; None if there are no such scans. `filtered`: with at
    most this many keys, scans filter by them while they decode.
    """

    columns: tuple[str, ...]
    values: int | None
    most: int | None = None
    filtered: int = 0


@dataclass(frozen=True)
class Exchange:
    """A stage border. `partitions` is how many outputs each producer task writes (1 unless it is a shuffle). `key_set`:
    set if the rows are keys; whether they are used is decided while the query runs."""

    id: ExchangeId
    kind: ExchangeKind
    producer: StageId
    partitions: int
    column_names: tuple[str, ...]
    keys: tuple[str, ...] = ()
    key_set: KeySet | None = None


@dataclass(frozen=True)
class ShuffleJoin:
    """A join of two shuffles that may become a broadcast join while the query runs (`plan/shuffle_joins.py`).

    `build_first`: the build side probably is the smaller one, so the probe side waits until its exact size is known.
    """

    build: ExchangeId
    probe: ExchangeId
    build_first: bool


@dataclass(frozen=True)
class Stage:
    """A part of the plan between exchanges, in DataFusion's encoding, with exchange sources as leaves.

    `task_count`: the number of its partitions; a task runs `partitions_per_task` of them. `mergeable`: a task may read
    several shuffle partitions at once, because every partitioned leaf of the stage is a shuffle. `deterministic`: a
    second attempt gives the same rows, so lost output may be recomputed without recomputing the stages that read it.
    `whole`: its one task runs the query's whole plan. `collects`: shuffles that each of its tasks reads whole.
    `decisions`: decisions about it while the query ran, with reasons.
    """

    id: StageId
    plan: bytes
    task_count: int
    inputs: tuple[ExchangeId, ...]
    output: ExchangeId
    mergeable: bool
    deterministic: bool
    scan_bytes: int = 0
    whole: bool = False
    partitions_per_task: int = 1
    shuffle_join: ShuffleJoin | None = None
    collects: tuple[ExchangeId, ...] = ()
    decisions: tuple[str, ...] = ()

    @property
    def planned_tasks(self) -> int:
        """The number of tasks if no small partitions are merged."""
        return -(-self.task_count // self.partitions_per_task)


@dataclass(frozen=True)
class Head:
    """The top of the plan, run in the coordinator.

    Without a plan the head only passes on the frames of its one gather, from row `skip` on and at most `fetch` rows.
    Then it returns rows while the producers still run.
    """

    inputs: tuple[ExchangeId, ...]
    plan: bytes | None = None
    skip: int = 0
    fetch: int | None = None
    deterministic: bool = True

    @property
    def streams(self) -> bool:
        return self.plan is None


@dataclass(frozen=True)
class StageGraph:
    """Stages, every producer before its consumers, and the head above them.

    `spark_functions` are the names that mean Spark's functions in these plans, and not DataFusion's. `notes` explain
    cuts that are not obvious.
    """

    stages: tuple[Stage, ...]
    exchanges: tuple[Exchange, ...]
    head: Head
    spark_functions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def _stage_by_id(self) -> dict[StageId, Stage]:
        return {stage.id: stage for stage in self.stages}

    @cached_property
    def _exchange_by_id(self) -> dict[ExchangeId, Exchange]:
        return {exchange.id: exchange for exchange in self.exchanges}

    def stage(self, stage_id: StageId) -> Stage:
        return self._stage_by_id[stage_id]

    def exchange(self, exchange_id: ExchangeId) -> Exchange:
        return self._exchange_by_id[exchange_id]

    def producer_of(self, exchange_id: ExchangeId) -> Stage:
        return self.stage(self.exchange(exchange_id).producer)

    def with_stage(self, changed: Stage) -> StageGraph:
        """The same graph with another stage in the place of the one with that number."""
        return replace(self, stages=tuple(changed if stage.id == changed.id else stage for stage in self.stages))

    @property
    def wide(self) -> bool:
        """Whether a task runs several partitions. Such a task does not spill."""
        return any(stage.partitions_per_task > 1 for stage in self.stages)

    @property
    def repeatable(self) -> bool:
        """Whether running it again, whole or in part, gives the same rows."""
        whole = self.head.fetch is None and not self.head.skip
        return whole and self.head.deterministic and all(stage.deterministic for stage in self.stages)

    @property
    def task_count(self) -> int:
        return sum(stage.planned_tasks for stage in self.stages)

    def to_json(self) -> dict[str, Any]:
        """A summary for logs and reproducers, without the plans' bytes."""
        return {
            "stages": [
                {
                    "id": stage.id,
                    "tasks": stage.planned_tasks,
                    "partitions_per_task": stage.partitions_per_task,
                    "inputs": list(stage.inputs),
                    "output": stage.output,
                    "plan_bytes": len(stage.plan),
                    "scan_bytes": stage.scan_bytes,
                    "deterministic": stage.deterministic,
                    **({"decisions": list(stage.decisions)} if stage.decisions else {}),
                }
                for stage in self.stages
            ],
            "exchanges": [
                {
                    "id": exchange.id,
                    "kind": exchange.kind.value,
                    "producer": exchange.producer,
                    "partitions": exchange.partitions,
                    "keys": list(exchange.keys),
                    "columns": list(exchange.column_names),
                }
                for exchange in self.exchanges
            ],
            "head": {
                "inputs": list(self.head.inputs),
                "streams": self.head.streams,
                "skip": self.head.skip,
                "fetch": self.head.fetch,
            },
            **({"notes": list(self.notes)} if self.notes else {}),
        }


class Why(StrEnum):
    """What kind of reason keeps a query on a single node."""

    SMALL = "small"  # it reads too little to split
    SWITCHED_OFF = "switched off"  # a setting or the caller turned it off
    REFUSED = "refused"  # it reads enough, but cannot be distributed


@dataclass(frozen=True)
class Distribution:
    """What planning decided: a stage graph, or the reason why the query runs on a single node."""

    graph: StageGraph | None = None
    reason: str | None = None
    why: Why | None = None

    @property
    def distributed(self) -> bool:
        return self.graph is not None


def with_head_as_stage(graph: StageGraph) -> StageGraph:
    """The same graph with the head's plan as a last stage of one task, for callers that need all rows to come from
    tasks."""
    head = graph.head
    if head.plan is None:
        return graph
    number = max(stage.id for stage in graph.stages) + 1
    last = Stage(
        id=number,
        plan=head.plan,
        task_count=1,
        inputs=head.inputs,
        output=number,
        mergeable=False,
        deterministic=head.deterministic,
    )
    gather = Exchange(number, ExchangeKind.GATHER, number, partitions=1, column_names=())
    return replace(graph, stages=(*graph.stages, last), exchanges=(*graph.exchanges, gather), head=Head((number,)))
