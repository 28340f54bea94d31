"""Spans and metrics of OpenTelemetry, from the events of a query."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import sparkfusion
from sparkfusion import Session, UserError
from sparkfusion.ids import TaskKey
from sparkfusion.observe.events import (
    Event,
    JoinDecided,
    QueryFailed,
    QueryFinished,
    QueryPlanned,
    QueryRestarted,
    StageFinished,
    StageSkipped,
    StageStarted,
    Subscriber,
    TaskFailed,
    TaskFinished,
    TaskRunning,
    TaskStarted,
)
from sparkfusion.observe.otel import instrument
from tests.behaviour.parts import DISTRIBUTED, PARTS, write_parts

PLANNED = QueryPlanned("q", 2, 3, None, seconds=1.0, text="select 'secret'", at=11.0)


class Telemetry:
    """A source of events, and the spans and metrics that are made of them."""

    def __init__(self) -> None:
        self.subscribers: list[Subscriber] = []
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        self.subscribers.append(subscriber)
        return lambda: self.subscribers.remove(subscriber)

    def instrument(self, session: Session | None = None, *, with_text: bool = False) -> Callable[[], None]:
        return instrument(
            session or self, tracer_provider=self.tracers, meter_provider=self.meters, with_text=with_text
        )

    def emit(self, *events: Event) -> None:
        for event in events:
            for subscriber in tuple(self.subscribers):
                subscriber(event)

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == f"sparkfusion.{name}"]

    def span(self, name: str) -> ReadableSpan:
        (span,) = self.spans(name)
        return span

    def points(self, name: str) -> list[NumberDataPoint | HistogramDataPoint]:
        data = self._reader.get_metrics_data()
        found = [
            point
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == f"sparkfusion.{name}"
            for point in metric.data.data_points
        ]
        return [point for point in found if isinstance(point, NumberDataPoint | HistogramDataPoint)]


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    made = Telemetry()
    yield made
    made.tracers.shutdown()
    made.meters.shutdown()


def key(stage: int = 1, task: int = 0, attempt: int = 0) -> TaskKey:
    return TaskKey("q", stage, task, attempt)


def attributes(span: ReadableSpan) -> dict[str, object]:
    return {name.removeprefix("sparkfusion."): value for name, value in (span.attributes or {}).items()}


def times(span: ReadableSpan) -> tuple[float, float]:
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time / 1e9, span.end_time / 1e9


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent is not None else None


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def test_a_query_a_stage_and_an_attempt_have_a_span_each(telemetry: Telemetry) -> None:
    telemetry.instrument()
    telemetry.emit(
        PLANNED,
        StageStarted("q", 1, 1, at=12.0),
        TaskStarted("q", key(), at=12.0),
        TaskRunning("q", key(), "w:1", at=13.0),
        TaskFinished("q", key(), rows=7, bytes=70, seconds=2.0, worker="w:1", started_at=13.0, at=15.5),
        StageFinished("q", 1, 7, 70, at=15.5),
        QueryFinished("q", rows=3, seconds=5.0, at=16.0),
    )
    query, stage, task = telemetry.span("query"), telemetry.span("stage"), telemetry.span("task")
    assert (times(query), times(stage), times(task)) == ((10.0, 16.0), (12.0, 15.5), (13.0, 15.0))
    assert parent_of(query) is None
    assert parent_of(stage) == id_of(query)
    assert parent_of(task) == id_of(stage)
    assert attributes(query) == {
        "query": "q",
        "stages": 2,
        "tasks": 3,
        "distributed": True,
        "rows": 3,
        "outcome": "finished",
    }
    assert attributes(stage) == {"query": "q", "stage": 1, "tasks": 1, "rows": 7, "bytes": 70}
    where = {"query": "q", "stage": 1, "task": 0, "attempt": 0, "worker": "w:1"}
    assert attributes(task) == {**where, "outcome": "finished", "rows": 7, "bytes": 70}


def test_errors_are_recorded_with_their_attempt_and_their_query(telemetry: Telemetry) -> None:
    telemetry.instrument()
    telemetry.emit(
        PLANNED,
        StageStarted("q", 1, 1, at=12.0),
        TaskFailed("q", key(), "worker lost", retried=True, started_at=12.0, at=13.0),
        TaskFailed("q", key(attempt=1), "disk full", retried=False, worker="w", started_at=13.0, at=14.0),
        QueryFailed("q", "disk full", cancelled=False, at=15.0),
    )
    first, second = telemetry.spans("task")
    assert (attributes(first)["outcome"], first.status.description) == ("retried", "worker lost")
    assert (attributes(second)["outcome"], attributes(second)["attempt"]) == ("failed", 1)
    assert "worker" not in attributes(first)
    for span in (second, telemetry.span("query")):
        assert span.status.status_code is StatusCode.ERROR
        assert [(event.name, dict(event.attributes or {})) for event in span.events][-1] == (
            "exception",
            {"exception.message": "disk full"},
        )
    assert times(telemetry.span("stage")) == (12.0, 15.0), "it ends with its query"


def test_a_cancelled_query_is_no_error_and_its_attempts_are_stopped(telemetry: Telemetry) -> None:
    telemetry.instrument()
    telemetry.emit(
        PLANNED,
        StageStarted("q", 1, 1, at=12.0),
        TaskRunning("q", key(), "w", at=12.5),
        QueryFailed("q", "closed", cancelled=True, at=14.0),
    )
    assert telemetry.span("query").status.status_code is StatusCode.UNSET
    assert attributes(telemetry.span("query"))["outcome"] == "cancelled"
    assert attributes(telemetry.span("task"))["outcome"] == "stopped"
    assert times(telemetry.span("task")) == (12.5, 14.0)


def test_decisions_and_a_new_beginning_are_events_of_the_query(telemetry: Telemetry) -> None:
    telemetry.instrument()
    telemetry.emit(
        PLANNED,
        StageStarted("q", 1, 1, at=12.0),
        JoinDecided("q", 1, "it is small"),
        StageSkipped("q", 1, "no rows", at=13.0),
        QueryRestarted("q", 1, 1, "memory", 0.1),
        StageStarted("q", 1, 1, at=14.0),
        QueryFinished("q", rows=0, seconds=1.0, at=15.0),
    )
    assert [event.name for event in telemetry.span("query").events] == [
        "planned",
        "join_decided",
        "stage_skipped",
        "restarted",
    ]
    assert [times(span) for span in telemetry.spans("stage")] == [(12.0, 13.0), (14.0, 15.0)]


@pytest.mark.parametrize("with_text", [True, False])
def test_sql_is_shown_only_if_somebody_asks_for_it(telemetry: Telemetry, with_text: bool) -> None:
    telemetry.instrument(with_text=with_text)
    telemetry.emit(PLANNED, QueryFinished("q", rows=0, seconds=1.0))
    shown = telemetry.span("query").to_json()
    assert ("secret" in shown) is with_text


def test_the_end_of_it_ends_open_spans(telemetry: Telemetry) -> None:
    end = telemetry.instrument()
    telemetry.emit(PLANNED)
    end()
    assert attributes(telemetry.span("query"))["outcome"] == "unknown"
    assert telemetry.subscribers == []


def test_metrics_count_what_has_ended(telemetry: Telemetry) -> None:
    telemetry.instrument()
    telemetry.emit(
        PLANNED,
        QueryPlanned("other", 0, 0, "small", 0.0),
        TaskFinished("q", key(), rows=7, bytes=70, seconds=2.0),
        TaskFinished("q", key(task=1), rows=3, bytes=30, seconds=1.0),
        TaskFailed("q", key(task=2), "lost", retried=True, started_at=12.0, at=16.0),
        QueryFinished("q", rows=1, seconds=1.0, at=20.0),
        QueryFinished("unknown", rows=1, seconds=1.0),
    )
    (active,), (rows,), (size,) = (telemetry.points(name) for name in ("query.active", "task.rows", "task.bytes"))
    assert [point.value for point in (active, rows, size) if isinstance(point, NumberDataPoint)] == [1, 10, 100]
    (query,) = (point for point in telemetry.points("query.duration") if isinstance(point, HistogramDataPoint))
    assert (query.count, query.sum, dict(query.attributes or {})) == (1, 10.0, {"sparkfusion.outcome": "finished"})
    tasks = {
        (point.attributes or {})["sparkfusion.outcome"]: (point.count, point.sum)
        for point in telemetry.points("task.duration")
        if isinstance(point, HistogramDataPoint)
    }
    assert tasks == {"finished": (2, 3.0), "failed": (1, 4.0)}


def test_a_real_query_is_a_child_of_the_callers_span(telemetry: Telemetry, tmp_path: Path) -> None:
    with sparkfusion.connect(config={**DISTRIBUTED, "sparkfusion.task_cores": 1}) as session:
        session.register_parquet("t", write_parts(tmp_path))
        telemetry.instrument(session)
        with telemetry.tracers.get_tracer("program").start_as_current_span("handle request") as caller:
            session.sql("select k, count(*) from t group by k").collect()
        with pytest.raises(UserError):
            session.sql("select k, sum(v / (v - 500)) from t group by k").collect()
    queries = telemetry.spans("query")
    assert parent_of(queries[0]) == caller.get_span_context().span_id
    assert [attributes(query)["outcome"] for query in queries] == ["finished", "failed"]
    assert [query.status.status_code for query in queries] == [StatusCode.UNSET, StatusCode.ERROR]
    good = attributes(queries[0])["query"]
    stages = [span for span in telemetry.spans("stage") if attributes(span)["query"] == good]
    tasks = [span for span in telemetry.spans("task") if attributes(span)["query"] == good]
    assert [attributes(span)["stage"] for span in stages] == [1, 2]
    assert {parent_of(span) for span in tasks} <= {id_of(span) for span in stages}
    scans = [attributes(span) for span in tasks if attributes(span)["stage"] == 1]
    assert [span["rows"] for span in scans] == [7] * PARTS
    for span in (*stages, *tasks):
        assert times(queries[0])[0] <= times(span)[0] <= times(span)[1] <= times(queries[0])[1]


def test_without_the_package_an_error_says_what_to_install(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(UserError, match=r"pip install opentelemetry-api, or .*sparkfusion\[otel\]"):
        telemetry.instrument()


def test_nothing_is_imported_unless_asked_for() -> None:
    program = (
        "import sys, sparkfusion\n"
        "with sparkfusion.connect() as session: session.sql('select 1').collect()\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('opentelemetry', 'prometheus_client')])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    assert ended.stdout == "[]\n"
