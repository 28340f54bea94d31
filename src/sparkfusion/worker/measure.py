"""Operator metrics of a plan that has run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from datafusion.plan import ExecutionPlan, MetricsSet

from sparkfusion.worker.task import OperatorMetrics

_NANOSECONDS = 1e9
_LONG_NAME = 10_000
_LISTS = re.compile(r"(?<=IN \(SET\) )\(\[[^\]]*\]\)|(?<= in )\([^()]*\)")
_SCANNING = "time_elapsed_processing"


def operator_metrics(plan: ExecutionPlan) -> tuple[OperatorMetrics, ...]:
    """One entry for each operator, parents first, as the plan is displayed."""
    return tuple(_walk(plan, 0))


def sum_operators(tasks: Iterable[tuple[OperatorMetrics, ...]]) -> tuple[OperatorMetrics, ...]:
    """The operators of several runs of a plan, summed by their position in the plan: over all tasks of a stage, or over
    all units of a task.

    Tasks of a union run different children; then only the longest plan is shown.
    """
    shapes: dict[tuple[tuple[str, int], ...], list[tuple[OperatorMetrics, ...]]] = {}
    for operators in tasks:
        shape = tuple((operator.name.split(":")[0], operator.depth) for operator in operators)
        shapes.setdefault(shape, []).append(operators)
    if not shapes:
        return ()
    most = max(shapes.values(), key=lambda group: (len(group), len(group[0])))
    return tuple(_sum(column) for column in zip(*most, strict=True))


def _sum(operators: tuple[OperatorMetrics, ...]) -> OperatorMetrics:
    rows = [operator.rows for operator in operators if operator.rows is not None]
    seconds = [operator.compute_seconds for operator in operators if operator.compute_seconds is not None]
    return OperatorMetrics(
        name=operators[0].name,
        depth=operators[0].depth,
        rows=sum(rows) if rows else None,
        compute_seconds=sum(seconds) if seconds else None,
        spilled_bytes=sum(operator.spilled_bytes for operator in operators),
    )


def _elapsed_time(metrics: MetricsSet) -> int | None:
    """The time an operator took. A scan counts reading and decoding under names of their own, and has almost nothing
    under the usual name."""
    scanning = metrics.sum_by_name(_SCANNING)
    return metrics.elapsed_compute if scanning is None else scanning


def _shorten(name: str) -> str:
    """Without the lists of keys that a scan looks for, which may be very long."""
    return name if len(name) <= _LONG_NAME else _LISTS.sub("(…)", name)


def _walk(plan: ExecutionPlan, depth: int) -> list[OperatorMetrics]:
    metrics = plan.metrics()
    elapsed = _elapsed_time(metrics) if metrics is not None else None
    found = [
        OperatorMetrics(
            name=_shorten(plan.display().strip()),
            depth=depth,
            rows=metrics.output_rows if metrics is not None else None,
            compute_seconds=None if elapsed is None else elapsed / _NANOSECONDS,
            spilled_bytes=(metrics.spilled_bytes or 0) if metrics is not None else 0,
        )
    ]
    for child in plan.children():
        found.extend(_walk(child, depth + 1))
    return found
