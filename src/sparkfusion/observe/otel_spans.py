"""Spans of queries, stages and task attempts, made of their events. Imported only by `otel.instrument`."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import context
from opentelemetry.context import Context
from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context

from sparkfusion.ids import QueryId, StageId, TaskKey
from sparkfusion.observe.events import (
    Event,
    JoinDecided,
    KeySetDecided,
    QueryFailed,
    QueryFinished,
    QueryPlanned,
    QueryRestarted,
    SkewDecided,
    StageFinished,
    StageSkipped,
    StageStarted,
    TaskFailed,
    TaskFinished,
    TaskRunning,
    TaskStarted,
)
from sparkfusion.observe.log_lines import event_name

_Decided = JoinDecided | KeySetDecided | SkewDecided | StageSkipped


@dataclass
class _OpenQuery:
    """The spans of a query that has not ended. `attempts`: when and where each running attempt began."""

    span: Span
    context: Context
    stages: dict[StageId, Span] = field(default_factory=dict)
    contexts: dict[StageId, Context] = field(default_factory=dict)
    attempts: dict[TaskKey, tuple[float, str | None]] = field(default_factory=dict)


class QuerySpans:
    """A subscriber. Any thread may call it.

    The span of an attempt is made when the attempt has ended: only then it is known when it began, and it has no
    children. All times are by the coordinator's clock.
    """

    def __init__(self, tracer: Tracer, *, with_text: bool) -> None:
        self._tracer = tracer
        self._with_text = with_text
        self._lock = threading.Lock()
        self._open: dict[QueryId, _OpenQuery] = {}

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, QueryPlanned):
                self._open[event.query] = self._begin(event)
            elif (query := self._open.get(event.query)) is not None:
                self._follow(query, event)

    def close(self) -> None:
        """End the spans of queries that have not ended."""
        with self._lock:
            left, self._open = list(self._open.values()), {}
        for query in left:
            self._end(query, time.time(), "unknown")

    def _begin(self, event: QueryPlanned) -> _OpenQuery:
        """Start the span of a query. Called on the thread that starts the query, so the current span is the
        caller's."""
        attributes: dict[str, Any] = {
            "sparkfusion.query": event.query,
            "sparkfusion.stages": event.stages,
            "sparkfusion.tasks": event.tasks,
            "sparkfusion.distributed": event.reason is None,
        }
        if event.reason is not None:
            attributes["sparkfusion.reason"] = event.reason
        if self._with_text and event.text:
            attributes["db.query.text"] = event.text
        caller = context.get_current()
        start = _nanoseconds(event.at - event.seconds)
        span = self._tracer.start_span("sparkfusion.query", caller, attributes=attributes, start_time=start)
        span.add_event("planned", timestamp=_nanoseconds(event.at))
        return _OpenQuery(span, set_span_in_context(span, caller))

    def _follow(self, query: _OpenQuery, event: Event) -> None:
        match event:
            case StageStarted():
                self._start_stage(query, event)
            case TaskStarted():
                query.attempts[event.key] = (event.at, None)
            case TaskRunning():
                query.attempts[event.key] = (event.at, event.worker)
            case TaskFinished() | TaskFailed():
                self._end_attempt(query, event)
            case StageFinished():
                _end_stage(query, event.stage, event.at, {"rows": event.rows, "bytes": event.bytes})
            case JoinDecided() | KeySetDecided() | SkewDecided() | StageSkipped():
                _note_decision(query, event)
            case QueryRestarted():
                query.span.add_event("restarted", {"sparkfusion.reason": event.reason}, _nanoseconds(event.at))
                self._end_parts(query, event.at)
            case QueryFinished():
                query.span.set_attribute("sparkfusion.rows", event.rows)
                self._end(query, event.at, "finished")
                del self._open[event.query]
            case QueryFailed():
                if not event.cancelled:
                    _record_error(query.span, event.message, event.at)
                self._end(query, event.at, "cancelled" if event.cancelled else "failed")
                del self._open[event.query]

    def _start_stage(self, query: _OpenQuery, event: StageStarted) -> None:
        attributes: dict[str, Any] = {
            "sparkfusion.query": event.query,
            "sparkfusion.stage": event.stage,
            "sparkfusion.tasks": event.tasks,
        }
        span = self._tracer.start_span(
            "sparkfusion.stage", query.context, attributes=attributes, start_time=_nanoseconds(event.at)
        )
        query.stages[event.stage] = span
        query.contexts[event.stage] = set_span_in_context(span, query.context)

    def _end_attempt(self, query: _OpenQuery, event: TaskFinished | TaskFailed) -> None:
        begun, _ = query.attempts.pop(event.key, (event.at, None))
        start = event.started_at or begun
        if isinstance(event, TaskFailed):
            span = self._start_attempt(query, event.key, start, event.worker, "retried" if event.retried else "failed")
            _record_error(span, event.message, event.at)
            span.end(_nanoseconds(max(start, event.at)))
            return
        span = self._start_attempt(query, event.key, start, event.worker, "finished")
        span.set_attributes({"sparkfusion.rows": event.rows, "sparkfusion.bytes": event.bytes})
        if event.earlier_attempts:
            span.set_attribute("sparkfusion.earlier_attempts", event.earlier_attempts)
        span.end(_nanoseconds(start + event.seconds))

    def _start_attempt(self, query: _OpenQuery, key: TaskKey, at: float, worker: str | None, outcome: str) -> Span:
        attributes: dict[str, Any] = {
            "sparkfusion.query": key.query,
            "sparkfusion.stage": key.stage,
            "sparkfusion.task": key.task,
            "sparkfusion.attempt": key.attempt,
            "sparkfusion.outcome": outcome,
        }
        if worker is not None:
            attributes["sparkfusion.worker"] = worker
        parent = query.contexts.get(key.stage, query.context)
        return self._tracer.start_span("sparkfusion.task", parent, attributes=attributes, start_time=_nanoseconds(at))

    def _end(self, query: _OpenQuery, at: float, outcome: str) -> None:
        self._end_parts(query, at)
        query.span.set_attribute("sparkfusion.outcome", outcome)
        query.span.end(_nanoseconds(at))

    def _end_parts(self, query: _OpenQuery, at: float) -> None:
        """End the spans of attempts that were abandoned or stopped, and of their stages."""
        for key, (begun, worker) in query.attempts.items():
            self._start_attempt(query, key, begun, worker, "stopped").end(_nanoseconds(max(begun, at)))
        query.attempts.clear()
        for stage in list(query.stages):
            _end_stage(query, stage, at, {})


def _end_stage(query: _OpenQuery, stage: StageId, at: float, figures: dict[str, int]) -> None:
    span = query.stages.pop(stage, None)
    if span is not None:
        span.set_attributes({f"sparkfusion.{name}": value for name, value in figures.items()})
        span.end(_nanoseconds(at))


def _note_decision(query: _OpenQuery, event: _Decided) -> None:
    told: dict[str, Any] = {"sparkfusion.stage": event.stage, "sparkfusion.reason": event.reason}
    query.span.add_event(event_name(event), told, _nanoseconds(event.at))
    if isinstance(event, StageSkipped):
        _end_stage(query, event.stage, event.at, {})


def _record_error(span: Span, message: str, at: float) -> None:
    span.set_status(Status(StatusCode.ERROR, message))
    span.add_event("exception", {"exception.message": message}, _nanoseconds(at))


def _nanoseconds(at: float) -> int:
    return int(at * 1e9)
