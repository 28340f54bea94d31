"""Metrics of queries and task attempts for OpenTelemetry, made of their events. Imported only by `otel.instrument`."""

from __future__ import annotations

from opentelemetry.metrics import Meter

from sparkfusion.ids import QueryId
from sparkfusion.observe.events import Event, QueryFailed, QueryFinished, QueryPlanned, TaskFailed, TaskFinished

_OUTCOME = "sparkfusion.outcome"


class QueryMeters:
    """A subscriber. Any thread may call it. The only attribute is the outcome, so that there are few time series."""

    def __init__(self, meter: Meter) -> None:
        self._begun: dict[QueryId, float] = {}
        self._active = meter.create_up_down_counter(
            "sparkfusion.query.active", unit="{query}", description="Queries that run now."
        )
        self._queries = meter.create_histogram(
            "sparkfusion.query.duration", unit="s", description="Queries that have ended: seconds with planning."
        )
        self._tasks = meter.create_histogram(
            "sparkfusion.task.duration", unit="s", description="Attempts at tasks that have ended: seconds."
        )
        self._rows = meter.create_counter("sparkfusion.task.rows", unit="{row}", description="Rows that tasks wrote.")
        self._bytes = meter.create_counter("sparkfusion.task.bytes", unit="By", description="Bytes that tasks wrote.")

    def __call__(self, event: Event) -> None:
        match event:
            case QueryPlanned():
                self._begun[event.query] = event.at - event.seconds
                self._active.add(1)
            case QueryFinished():
                self._end(event, "finished")
            case QueryFailed():
                self._end(event, "cancelled" if event.cancelled else "failed")
            case TaskFinished():
                self._tasks.record(event.seconds, {_OUTCOME: "finished"})
                self._rows.add(event.rows)
                self._bytes.add(event.bytes)
            case TaskFailed():
                begun = event.started_at or event.at
                self._tasks.record(max(0.0, event.at - begun), {_OUTCOME: "failed"})

    def _end(self, event: QueryFinished | QueryFailed, outcome: str) -> None:
        begun = self._begun.pop(event.query, None)
        if begun is not None:
            self._active.add(-1)
            self._queries.record(event.at - begun, {_OUTCOME: outcome})
