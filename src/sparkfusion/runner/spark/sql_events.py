"""Spark's own events about a SQL query, for a query of ours, in the JSON form that Spark's event logs have.

Spark reads old event logs, so this form stays, while the constructors of its event classes change with its versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparkfusion.ids import StageId
from sparkfusion.observe.explain import Explained, render_explain
from sparkfusion.plan.stage import Distribution, StageGraph
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.query_state import HEAD
from sparkfusion.runner.spark.job_names import name_stage

SparkEvent = dict[str, Any]
Metrics = Mapping[StageId, "StageMetricIds"]
_PACKAGE = "org.apache.spark.sql.execution.ui"


@dataclass(frozen=True)
class StageMetricIds:
    """The numbers of a stage's metrics, among all accumulators of a Spark context."""

    rows: int
    bytes: int
    tasks: int
    time: int

    def describe(self) -> list[SparkEvent]:
        """What Spark calls them, and how it adds them up and writes them."""
        kinds = (
            ("rows", self.rows, "sum"),
            ("bytes", self.bytes, "size"),
            ("tasks", self.tasks, "sum"),
            ("time of tasks", self.time, "timing"),
        )
        return [{"name": name, "accumulatorId": id, "metricType": kind} for name, id, kind in kinds]


def number_metrics(graph: StageGraph, new_id: Callable[[], int]) -> dict[StageId, StageMetricIds]:
    """Numbers for the metrics of all stages, and of the head if it has a plan."""
    stages = [stage.id for stage in graph.stages] + ([] if graph.head.streams else [HEAD])
    return {stage: StageMetricIds(new_id(), new_id(), new_id(), new_id()) for stage in stages}


def explain_stages(graph: StageGraph) -> str:
    return render_explain(Explained(Distribution(graph), lambda: ""))


def start_event(execution: int, job: QueryJob, text: str, plan: str, metrics: Metrics, at: float) -> SparkEvent:
    """A query has begun. `text`: what it is called; `plan`: its stages, for people."""
    return {
        "Event": f"{_PACKAGE}.SparkListenerSQLExecutionStart",
        "executionId": execution,
        "rootExecutionId": execution,
        "description": text,
        "details": f"sparkfusion query {job.query}",
        "physicalPlanDescription": plan,
        "sparkPlanInfo": _Tree(job.graph, metrics).root(),
        "time": _milliseconds(at),
        "modifiedConfigs": {},
        "jobTags": [],
    }


def metrics_event(execution: int, values: Sequence[tuple[int, int]]) -> SparkEvent:
    """Values of metrics by their numbers. Spark adds up all the values that it gets for a metric."""
    updates = [list(each) for each in values]
    return {"Event": f"{_PACKAGE}.SparkListenerDriverAccumUpdates", "executionId": execution, "accumUpdates": updates}


def end_event(execution: int, message: str, at: float) -> SparkEvent:
    """The query has ended. `message`: why it failed; empty if it did not."""
    return {
        "Event": f"{_PACKAGE}.SparkListenerSQLExecutionEnd",
        "executionId": execution,
        "time": _milliseconds(at),
        "errorMessage": message,
    }


class _Tree:
    """Stages as the tree of operators that Spark draws. A stage that several others read is drawn once."""

    def __init__(self, graph: StageGraph, metrics: Metrics) -> None:
        self._graph = graph
        self._metrics = metrics
        self._drawn: set[StageId] = set()

    def root(self) -> SparkEvent:
        head = self._graph.head
        if head.streams:
            return self._stage(self._graph.producer_of(head.inputs[0]).id)
        below = self._producers(head.inputs)
        return _node("Head", "the last step of the plan, in the driver's Python process", below, self._metrics[HEAD])

    def _stage(self, id: StageId) -> SparkEvent:
        if id in self._drawn:
            return _node(f"Rows of stage {id} again", f"stage {id} runs once")
        self._drawn.add(id)
        stage = self._graph.stage(id)
        name = name_stage(stage, self._graph)
        return _node(f"Stage {id}: {name}", f"stage {id}: {name}", self._producers(stage.inputs), self._metrics[id])

    def _producers(self, exchanges: Sequence[int]) -> list[SparkEvent]:
        return [self._stage(id) for id in dict.fromkeys(self._graph.producer_of(each).id for each in exchanges)]


def _node(name: str, text: str, below: Sequence[SparkEvent] = (), metrics: StageMetricIds | None = None) -> SparkEvent:
    shown = metrics.describe() if metrics is not None else []
    return {"nodeName": name, "simpleString": text, "children": list(below), "metadata": {}, "metrics": shown}


def _milliseconds(at: float) -> int:
    return int(at * 1000)
