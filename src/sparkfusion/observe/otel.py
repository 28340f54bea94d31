"""OpenTelemetry: `instrument` makes spans and metrics of a session's events. Needs the extra `otel`.

OpenTelemetry is imported only when `instrument` is called (docs/observability.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from sparkfusion.extras import import_extra
from sparkfusion.observe.events import Subscriber

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_SCOPE = "sparkfusion"


class Observable(Protocol):
    """A `Session`, or anything else with events."""

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]: ...


def instrument(
    session: Observable,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    with_text: bool = False,
) -> Callable[[], None]:
    """Make spans and metrics of this session's queries, until the returned function is called.

    The span of a query is a child of the span that is current where the query is started. A session that is
    instrumented twice has every span twice.

    Args:
        tracer_provider, meter_provider: by default those of the process.
        with_text: whether the spans of queries have the SQL, which may hold secrets.
    """
    trace, metrics = (
        import_extra(f"opentelemetry.{part}", "otel", "instrument", distribution="opentelemetry-api")
        for part in ("trace", "metrics")
    )
    from sparkfusion.observe.otel_metrics import QueryMeters
    from sparkfusion.observe.otel_spans import QuerySpans

    spans = QuerySpans(trace.get_tracer(_SCOPE, tracer_provider=tracer_provider), with_text=with_text)
    meters = QueryMeters(metrics.get_meter(_SCOPE, meter_provider=meter_provider))
    ends = (session.subscribe(spans), session.subscribe(meters))

    def uninstrument() -> None:
        for end in ends:
            end()
        spans.close()

    return uninstrument
