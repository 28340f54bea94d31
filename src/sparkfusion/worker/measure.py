"""Operator metrics of a plan that has run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from datafusion.plan import ExecutionPlan

from sparkfusion.worker.task import OperatorMetrics

_NANOSECONDS = 1e9
N = TypeVar("N", int, float)


def operator_metrics(plan: ExecutionPlan) -> tuple[OperatorMetrics, ...]:
    """One entry for each operator, parents first, as the plan is displayed."""
    return tuple(_walk(plan, 0))


def added_up(before: Sequence[OperatorMetrics], now: Sequence[OperatorMetrics]) -> tuple[OperatorMetrics, ...]:
    """Metrics of a plan that ran several times, each time with other files; named as it was at first."""
    if len(before) != len(now):
        return tuple(now) if not before else tuple(before)
    return tuple(
        replace(
            old,
            rows=_sum(old.rows, new.rows),
            compute_seconds=_sum(old.compute_seconds, new.compute_seconds),
            spilled_bytes=old.spilled_bytes + new.spilled_bytes,
        )
        for old, new in zip(before, now, strict=True)
    )


def _sum(one: N | None, other: N | None) -> N | None:
    return other if one is None else one if other is None else one + other


def _walk(plan: ExecutionPlan, depth: int) -> list[OperatorMetrics]:
    metrics = plan.metrics()
    elapsed = metrics.elapsed_compute if metrics is not None else None
    found = [
        OperatorMetrics(
            name=plan.display().strip(),
            depth=depth,
            rows=metrics.output_rows if metrics is not None else None,
            compute_seconds=None if elapsed is None else elapsed / _NANOSECONDS,
            spilled_bytes=(metrics.spilled_bytes or 0) if metrics is not None else 0,
        )
    ]
    for child in plan.children():
        found.extend(_walk(child, depth + 1))
    return found
