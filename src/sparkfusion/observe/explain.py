"""Explain: the stage tree of a query as text, JSON, dot or an HTML page; after a run, with the measurements of every
stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.ids import StageId
from sparkfusion.observe.events import Event, QueryPlanned
from sparkfusion.observe.explain_formats import ExplainFormat
from sparkfusion.observe.log_lines import LineMaker, describe_plan, to_json
from sparkfusion.observe.metrics import StageMetrics, metrics_by_stage
from sparkfusion.observe.operators import narrowed_tables, operator_lines, task_leaves
from sparkfusion.observe.page import render_page
from sparkfusion.observe.query_model import LogLine, build_model
from sparkfusion.plan.stage import Distribution, Stage, StageGraph
from sparkfusion.worker.task import TaskReport

_SHOWN_TASKS = 8


@dataclass(frozen=True)
class Explained:
    """Everything that `explain` shows of a query: how it would run, or how it ran.

    Attributes:
        single_node_plan: called only for a query that is not distributed.
        reports: the reports of its tasks, if it ran. `feeds`: the statistics of its feeds. `events`: all its events, in
            their order.
        runner: where tasks run and where their frames are.
        tables: how tables of Spark's catalog are read, a line for each.
        text: the SQL that the user wrote.
    """

    distribution: Distribution
    single_node_plan: Callable[[], str]
    reports: Sequence[TaskReport] = ()
    feeds: Sequence[FeedStats] = ()
    events: Sequence[Event] = ()
    runner: str = ""
    tables: Sequence[str] = ()
    text: str = ""


def render_explain(explained: Explained, format: ExplainFormat = "text") -> str:
    """Show how a query runs, or ran."""
    if format == "json":
        return to_json(model_of(explained), indent=2)
    if format == "html":
        return render_page(model_of(explained))
    if format == "dot":
        return _as_dot(explained.distribution)
    graph, tables = explained.distribution.graph, explained.tables
    if graph is None:
        plan = explained.single_node_plan().rstrip()
        return "\n".join((f"not distributed: {explained.distribution.reason}", *tables, plan))
    metrics = metrics_by_stage(explained.reports)
    lines = _head_lines(graph, metrics, explained.runner, tables)
    for stage in reversed(graph.stages):
        lines += ["", *_stage_lines(stage, graph, metrics.get(stage.id))]
    lines += ["", *map(_feed_line, explained.feeds)] if explained.feeds else []
    return "\n".join(lines)


def model_of(explained: Explained) -> dict[str, Any]:
    """The model of the query (`query_model`), from its events if it ran."""
    maker = LineMaker(explained.runner)
    lines: list[LogLine] = [maker.line_of(event) for event in explained.events]
    if not any(isinstance(event, QueryPlanned) for event in explained.events):
        lines.insert(0, _plan_line(explained))
    first = {**lines[0], "text": explained.text, "tables": list(explained.tables)}
    if explained.distribution.graph is None:
        first["single_node"] = explained.single_node_plan().splitlines()
    return build_model([first, *lines[1:]])


def _plan_line(explained: Explained) -> LogLine:
    """The log line for a query that was planned and not run."""
    graph = explained.distribution.graph
    plan = describe_plan(graph) if graph is not None else None
    reason = explained.distribution.reason
    return {"event": "query_planned", "query": "", "reason": reason, "plan": plan, "place": explained.runner}


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
    graph: StageGraph, metrics: dict[StageId, StageMetrics], runner: str, tables: Sequence[str]
) -> list[str]:
    head = graph.head
    title = f"distributed: {_count(len(graph.stages), 'stage')}, {_count(graph.task_count, 'task')}"
    title += f", {runner}" if runner else ""
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
    if len(lines) != len(metrics.operators):  # the tasks of a union run a plan with other operators
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
