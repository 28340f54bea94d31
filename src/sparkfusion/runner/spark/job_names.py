"""What Spark's own user interface shows of a query: the SQL, and what each of its stages does."""

from __future__ import annotations

from pathlib import PurePath

from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.stage import Stage, StageGraph
from sparkfusion.plan.wire import PlanNode, children, decode, file_scan_conf, kind
from sparkfusion.runner.base import QueryJob

_SHOWN_CHARACTERS = 300
_MOST_STEPS = 6
_STEPS = {
    "aggregate": "aggregate",
    "cross_join": "cross join",
    "hash_join": "join",
    "nested_loop_join": "join",
    "sort": "sort",
    "sort_merge_join": "join",
    "unnest": "unnest",
    "window": "window",
}
"""Operators worth a word. The others pass rows on."""


def describe_job(job: QueryJob, graph: StageGraph, stage: Stage) -> str:
    """The description of a Spark job: which stage of which query it runs, and what it does with its rows."""
    text = one_line(job)
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    number = f"stage {stage.id} of {len(graph.stages)}"
    return f"sparkfusion query {job.query}, {number} ({name_stage(stage, graph)}): {shown}"


def one_line(job: QueryJob) -> str:
    """The SQL of a query."""
    return " ".join(job.text.split()) or "a DataFrame"


def name_stage(stage: Stage, graph: StageGraph) -> str:
    """What a stage does with its rows, in a few words."""
    steps = list(dict.fromkeys(_steps(decode(stage.plan), graph)))
    if len(steps) > _MOST_STEPS:
        steps = [*steps[:_MOST_STEPS], f"{len(steps) - _MOST_STEPS} more steps"]
    return ", ".join(steps)


def _steps(node: PlanNode, graph: StageGraph) -> list[str]:
    exchange = exchange_of(node)
    if exchange is not None:
        return [f"rows of stage {graph.exchange(exchange).producer}"]
    scan = file_scan_conf(node)
    if scan is not None:
        return _describe_files([file.path for group in scan.file_groups for file in group.files])
    below = [step for child in children(node) for step in _steps(child, graph)]
    return [*below, *([_STEPS[kind(node)]] if kind(node) in _STEPS else [])]


def _describe_files(paths: list[str]) -> list[str]:
    if not paths:
        return []
    first = "/".join(PurePath(paths[0]).parts[-2:])
    others = len(set(paths)) - 1
    return [f"scan {first} and {others} more" if others else f"scan {first}"]
