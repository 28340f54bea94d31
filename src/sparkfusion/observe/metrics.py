"""Measurements of a stage: sums over its tasks, and how unevenly the work was spread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sparkfusion.ids import ExchangeId, StageId
from sparkfusion.worker.measure import sum_operators
from sparkfusion.worker.task import Fetched, OperatorMetrics, TaskReport


@dataclass(frozen=True)
class StageMetrics:
    """The work of one stage. `skew` is the slowest task's time over the mean: 1.0 is perfectly even.

    `earlier_attempts` and `recomputed_inputs` count the work that Spark had to repeat for these tasks. `fetched` is the
    data that came from other workers, for each exchange.
    """

    stage: StageId
    tasks: int
    rows: int
    bytes: int
    seconds: float
    skew: float
    earlier_attempts: int
    recomputed_inputs: int
    fetched: tuple[Fetched, ...]
    operators: tuple[OperatorMetrics, ...]

    @classmethod
    def of(cls, stage: StageId, reports: Sequence[TaskReport]) -> StageMetrics:
        seconds = [report.seconds for report in reports]
        total = sum(seconds)
        return cls(
            stage=stage,
            tasks=len(reports),
            rows=sum(report.rows for report in reports),
            bytes=sum(report.manifest.bytes for report in reports),
            seconds=total,
            skew=max(seconds) * len(seconds) / total if total else 1.0,
            operators=sum_operators(report.operators for report in reports),
            earlier_attempts=sum(report.earlier_attempts for report in reports),
            recomputed_inputs=sum(report.recomputed_inputs for report in reports),
            fetched=_sum_fetched(each for report in reports for each in report.fetched),
        )


def _sum_fetched(fetched: Iterable[Fetched]) -> tuple[Fetched, ...]:
    sums: dict[ExchangeId, Fetched] = {}
    for each in fetched:
        so_far = sums.get(each.exchange, Fetched(each.exchange, 0, 0, 0.0))
        sums[each.exchange] = Fetched(
            each.exchange, so_far.bytes + each.bytes, so_far.messages + each.messages, so_far.seconds + each.seconds
        )
    return tuple(sums[exchange] for exchange in sorted(sums))


METRICS_SCHEMA = pa.schema(
    [
        ("stage", pa.int32()),
        ("tasks", pa.int32()),
        ("depth", pa.int32()),
        ("operator", pa.string()),
        ("rows", pa.int64()),
        ("compute_seconds", pa.float64()),
        ("spilled_bytes", pa.int64()),
        ("stage_rows", pa.int64()),
        ("stage_bytes", pa.int64()),
        ("stage_seconds", pa.float64()),
        ("skew", pa.float64()),
    ]
)


def metrics_table(reports: Iterable[TaskReport]) -> pa.Table:
    """A row for each operator of each stage, parents first. The columns about the stage are the same in each of its
    rows."""
    rows = [
        {
            "stage": stage.stage,
            "tasks": stage.tasks,
            "depth": operator.depth,
            "operator": operator.name,
            "rows": operator.rows,
            "compute_seconds": operator.compute_seconds,
            "spilled_bytes": operator.spilled_bytes,
            "stage_rows": stage.rows,
            "stage_bytes": stage.bytes,
            "stage_seconds": stage.seconds,
            "skew": stage.skew,
        }
        for stage in metrics_by_stage(reports).values()
        for operator in stage.operators
    ]
    return pa.Table.from_pylist(rows, schema=METRICS_SCHEMA)


def metrics_by_stage(reports: Iterable[TaskReport]) -> dict[StageId, StageMetrics]:
    grouped: dict[StageId, list[TaskReport]] = {}
    for report in reports:
        grouped.setdefault(report.key.stage, []).append(report)
    return {stage: StageMetrics.of(stage, group) for stage, group in sorted(grouped.items())}
