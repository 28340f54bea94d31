"""Events as lines of an event log: plain JSON, one line for each event, in a versioned format."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.ids import TaskKey
from sparkfusion.observe.events import Event, Measured, QueryPlanned, QueryRestarted
from sparkfusion.observe.metrics import metrics_by_stage
from sparkfusion.observe.operators import narrowed_tables, operator_lines, task_leaves
from sparkfusion.plan.stage import StageGraph

LOG_VERSION = 1
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
_APART = ("graph", "measured", "query", "at")


class LineMaker:
    """Makes the lines of one query. The plan is described when the query is planned, and again at its end if decisions
    have changed it."""

    def __init__(self, runner: str = "") -> None:
        self._runner = runner
        self._graph: StageGraph | None = None

    def line_of(self, event: Event) -> dict[str, Any]:
        line: dict[str, Any] = {"event": event_name(event), "at": event.at, "query": event.query}
        for each in fields(event):
            value = getattr(event, each.name)
            if isinstance(value, TaskKey):
                line |= {"stage": value.stage, "task": value.task, "attempt": value.attempt}
            elif each.name not in _APART:
                line[each.name] = [asdict(one) for one in value] if isinstance(value, tuple) else value
        if isinstance(event, QueryPlanned):
            line = {"event": line.pop("event"), "version": LOG_VERSION} | line | {"started": True}
            line |= {"place": self._runner} if self._runner else {}
        if isinstance(event, QueryPlanned | QueryRestarted) and event.graph is not None:
            self._graph = event.graph
            line["plan"] = describe_plan(event.graph)
        measured: Measured | None = getattr(event, "measured", None)
        return line | self._describe_run(measured) if measured is not None else line

    def _describe_run(self, measured: Measured) -> dict[str, Any]:
        found: dict[str, Any] = {
            "metrics": [asdict(each) for each in metrics_by_stage(measured.reports).values()],
            "feeds": describe_feeds(measured.feeds),
        }
        if measured.graph != self._graph:
            found["plan"] = describe_plan(measured.graph)
        return found


def event_name(event: Event) -> str:
    """The name of an event's kind in a log: `TaskFinished` is `task_finished`."""
    return _WORD.sub("_", type(event).__name__).lower()


def describe_plan(graph: StageGraph) -> dict[str, Any]:
    """The stages, with their operators as text and the files that their tasks read."""
    shown = graph.to_json()
    shown["head"]["operators"] = operator_lines(graph.head.plan, graph) if graph.head.plan else []
    for entry, stage in zip(shown["stages"], graph.stages, strict=True):
        entry["operators"] = operator_lines(stage.plan, graph)
        entry["leaves"] = task_leaves(stage)
        if narrowed := narrowed_tables(stage):
            entry["from_spark"] = narrowed
    return shown


def describe_feeds(feeds: Sequence[FeedStats]) -> list[dict[str, Any]]:
    return [asdict(feed) | {"provider": dict(feed.provider)} for feed in feeds]


def to_json(value: Any, indent: int | None = None) -> str:
    """JSON that every parser accepts. A number that is not finite, such as a counter of a provider, becomes null.

    >>> to_json({"a": float("nan"), "b": [1.5]})
    '{"a": null, "b": [1.5]}'
    """
    try:
        return json.dumps(value, allow_nan=False, indent=indent, ensure_ascii=False, default=str)
    except ValueError:
        return json.dumps(_finite(value), indent=indent, ensure_ascii=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
