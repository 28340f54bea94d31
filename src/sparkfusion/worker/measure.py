"""Operator metrics of a plan that has run."""

from __future__ import annotations

from datafusion.plan import ExecutionPlan

from sparkfusion.worker.task import OperatorMetrics

_NANOSECONDS = 1e9


def operator_metrics(plan: ExecutionPlan) -> tuple[OperatorMetrics, ...]:
    """One entry for each operator, parents first, as the plan is displayed."""
    return tuple(_walk(plan, 0))


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
