"""Explain: the stage tree of a query as text, JSON or dot; with task reports, what every stage and operator did."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Literal

from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.ids import StageId
from sparkfusion.observe.metrics import StageMetrics, metrics_by_stage
from sparkfusion.observe.operators import narrowed_tables, operator_lines, task_leaves
from sparkfusion.plan.stage import Distribution, Stage, StageGraph
from sparkfusion.worker.task import TaskReport

Format = Literal["text", "json", "dot"]
_SHOWN_TASKS = 8


def render_explain(
    distribution: Distribution,
    single_node_plan: Callable[[], str],
    *,
    reports: Sequence[TaskReport] = (),
    format: Format = "text",
    place: str = "",
    feeds: Sequence[FeedStats] = (),
    tables: Sequence[str] = (),
) -> str:
    """Show how a query runs, or ran if reports are given.

    Args:
        single_node_plan: called only for a query that is not distributed.
        place: where tasks run and where their frames are.
        feeds: what its feeds gave, if it ran.
        tables: how tables of Spark's catalog are read, a line for each.
    """
    metrics = metrics_by_stage(reports)
    graph = distribution.graph
    if format == "json":
        shown = _as_json(distribution, single_node_plan, metrics)
        shown |= {"feeds": [asdict(feed) | {"provider": dict(feed.provider)} for feed in feeds]} if feeds else {}
        shown |= {"tables": list(tables)} if tables else {}
        return json.dumps(shown | {"place": place} if place else shown, indent=2)
    if format == "dot":
        return _as_dot(distribution)
    if graph is None:
        return "\n".join((f"not distributed: {distribution.reason}", *tables, single_node_plan().rstrip()))
    lines = _head_lines(graph, metrics, place, tables)
    for stage in reversed(graph.stages):
        lines += ["", *_stage_lines(stage, graph, metrics.get(stage.id))]
    lines += ["", *map(_feed_line, feeds)] if feeds else []
    return "\n".join(lines)


def _feed_line(feed: FeedStats) -> str:
    again = f", {feed.replayed:,} replayed" if feed.replayed else ""
    again += f", {feed.failed:,} in failed attempts" if feed.failed else ""
    first = f", the first after {feed.first_unit_seconds * 1e3:,.0f} ms" if feed.first_unit_seconds is not None else ""
    own = "".join(f", {name} {value:,.10g}" for name, value in feed.provider)
    return (
        f"Feed {feed.table}: {_count(feed.found, 'unit')} found{first}, {feed.handed:,} handed out, {feed.done:,} read"
        f"{again}; at most {feed.most_waiting:,} waiting, tasks waited {feed.wait_seconds * 1e3:,.0f} ms{own}"
    )


def _head_lines(
    graph: StageGraph, metrics: dict[StageId, StageMetrics], place: str, tables: Sequence[str]
) -> list[str]:
    head = graph.head
    title = f"distributed: {_count(len(graph.stages), 'stage')}, {_count(graph.task_count, 'task')}"
    title += f", {place}" if place else ""
    title = "\n".join((title, *graph.notes, *tables))
    if head.streams:
        window = f", skip={head.skip}" if head.skip else ""
        window += f", fetch={head.fetch}" if head.fetch is not None else ""
        source = f"ExchangeSource: gather of stage {graph.producer_of(head.inputs[0]).id}, streamed{window}"
        return [title, "┌ Head ── in this process", f"│   {source}", "└"]
    body = _operator_lines(head.plan or b"", graph, metrics.get(0))
    lines = [title, f"┌ Head ── in this process{_summary(metrics.get(0))}", *(f"│   {line}" for line in body)]
    return [*lines, *_fetched_lines(graph, metrics.get(0)), "└"]


def _stage_lines(stage: Stage, graph: StageGraph, metrics: StageMetrics | None) -> list[str]:
    exchange = graph.exchange(stage.output)
    out = exchange.kind.value
    if exchange.keys:
        out += f" by [{', '.join(exchange.keys)}] into {exchange.partitions}"
    tasks = _count(stage.planned_tasks, "task")
    if stage.whole:
        tasks += f" for the whole plan, {_count(stage.partitions_per_task, 'partition')} at once"
    elif stage.partitions_per_task > 1:
        tasks += f" for {stage.task_count} partitions, {stage.partitions_per_task} at once in a task"
    lines = [f"┌ Stage {stage.id} ── {tasks} ── {out}{_summary(metrics, stage.task_count, stage.planned_tasks)}"]
    lines += [f"│   {line}" for line in _operator_lines(stage.plan, graph, metrics)]
    lines += [f"│ decided: {each}" for each in stage.decisions]
    lines += [f"│ from Spark: {read}" for read in narrowed_tables(stage)]
    leaves = task_leaves(stage)
    for task, files in enumerate(leaves[:_SHOWN_TASKS]):
        if files:
            lines.append(f"│ t{task}: {files}")
    if len(leaves) > _SHOWN_TASKS:
        lines.append(f"│ … {len(leaves) - _SHOWN_TASKS} more tasks")
    return [*lines, *_fetched_lines(graph, metrics), "└"]


def _fetched_lines(graph: StageGraph, metrics: StageMetrics | None) -> list[str]:
    return [
        f"│ from other workers: {each.bytes:,} bytes of stage {graph.exchange(each.exchange).producer} in "
        f"{_count(each.messages, 'message')}, {each.seconds * 1e3:,.1f} ms"
        for each in (metrics.fetched if metrics is not None else ())
    ]


def _operator_lines(plan: bytes, graph: StageGraph, metrics: StageMetrics | None) -> list[str]:
    if metrics is None or not metrics.operators:
        return operator_lines(plan, graph)
    lines = operator_lines(plan, graph)
    if len(lines) != len(metrics.operators):  # a union's task runs a plan of another shape
        lines = ["  " * operator.depth + operator.name for operator in metrics.operators]
    return [line + _operator_summary(op) for line, op in zip(lines, metrics.operators, strict=True)]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _summary(metrics: StageMetrics | None, partitions: int = 1, planned: int = 1) -> str:
    if metrics is None:
        return ""
    size = f", {metrics.bytes:,} bytes" if metrics.bytes else ""
    skew = f", skew {metrics.skew:.1f}" if metrics.tasks > 1 else ""
    merged = ", small partitions merged" if metrics.tasks < partitions and metrics.tasks != planned else ""
    ran = f" ── ran as {_count(metrics.tasks, 'task')}{merged}: {metrics.rows:,} rows"
    again = f", {_count(metrics.earlier_attempts, 'earlier attempt')}" if metrics.earlier_attempts else ""
    again += f", {_count(metrics.recomputed_inputs, 'input')} recomputed" if metrics.recomputed_inputs else ""
    return f"{ran}{size}, {metrics.seconds * 1e3:,.1f} ms{skew}{again}"


def _operator_summary(operator: Any) -> str:
    parts = []
    if operator.rows is not None:
        parts.append(f"{operator.rows:,} rows")
    if operator.compute_seconds is not None:
        parts.append(f"{operator.compute_seconds * 1e3:,.1f} ms")
    if operator.spilled_bytes:
        parts.append(f"spilled {operator.spilled_bytes:,} bytes")
    return f"  ({', '.join(parts)})" if parts else ""


def _as_json(
    distribution: Distribution, single_node_plan: Callable[[], str], metrics: dict[StageId, StageMetrics]
) -> dict[str, Any]:
    graph = distribution.graph
    if graph is None:
        return {"distributed": False, "reason": distribution.reason, "plan": single_node_plan().splitlines()}
    shown = {"distributed": True, **graph.to_json()}
    shown["head"]["operators"] = operator_lines(graph.head.plan, graph) if graph.head.plan else []
    for entry, stage in zip(shown["stages"], graph.stages, strict=True):
        entry["operators"] = operator_lines(stage.plan, graph)
        entry["leaves"] = task_leaves(stage)
        if narrowed := narrowed_tables(stage):
            entry["from_spark"] = narrowed
    if metrics:
        shown["metrics"] = [asdict(each) for each in metrics.values()]
    return shown


def _as_dot(distribution: Distribution) -> str:
    graph = distribution.graph
    lines = ["digraph stages {", "  rankdir=BT;", '  node [shape=box, fontname="monospace"];']
    if graph is None:
        return "\n".join([*lines, f'  single [label="single node\\n{_dot_text(distribution.reason or "")}"];', "}"])
    lines.append('  stage0 [label="head\\nin this process"];')
    for stage in graph.stages:
        names = [line.strip().split(":")[0] for line in operator_lines(stage.plan, graph)]
        label = f"stage {stage.id}, {stage.planned_tasks} tasks\\n" + "\\n".join(_dot_text(name) for name in names)
        lines.append(f'  stage{stage.id} [label="{label}"];')
    consumers = [(0, graph.head.inputs), *((stage.id, stage.inputs) for stage in graph.stages)]
    for consumer, inputs in consumers:
        for exchange_id in inputs:
            exchange = graph.exchange(exchange_id)
            label = _dot_text(exchange.kind.value + (f" by {', '.join(exchange.keys)}" if exchange.keys else ""))
            lines.append(f'  stage{exchange.producer} -> stage{consumer} [label="{label}"];')
    return "\n".join([*lines, "}"])


def _dot_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
