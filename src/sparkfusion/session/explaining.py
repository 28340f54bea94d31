"""How a query runs, or ran: what `DataFrame.explain` and the EXPLAIN statement show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from sparkfusion.errors import UserError
from sparkfusion.observe.events import Event
from sparkfusion.observe.explain import Explained, render_explain
from sparkfusion.observe.explain_formats import ExplainFormat
from sparkfusion.session.engine import Engine
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.planner import Planned
from sparkfusion.session.query import RunningQuery


def explain_query(
    engine: Engine,
    query: LazyQuery,
    planned: Planned | None = None,
    *,
    analyze: bool = False,
    format: ExplainFormat = "text",
) -> str:
    """The stages of a query; with `analyze`, the query is run, and they show what each stage did."""
    check_format(format)
    return render_explain(gather_facts(engine, query, planned, analyze=analyze), format)


def check_format(format: str) -> None:
    if format not in get_args(ExplainFormat):
        raise UserError(f"explain has the formats {', '.join(get_args(ExplainFormat))}, not {format!r}")


def gather_facts(
    engine: Engine, query: LazyQuery, planned: Planned | None = None, *, analyze: bool = False
) -> Explained:
    """What there is to show of a query. With `analyze` it is run, to its end."""
    planned = planned or engine.plan(query)
    known = Explained(
        planned.distribution,
        lambda: _single_node_text(query),
        runner=engine.describe_runner(planned.distribution.graph),
        tables=engine.tables.of_catalog.describe(query.source.inner),
        text=query.text,
    )
    return _run(engine, query, planned, known) if analyze else known


def _run(engine: Engine, query: LazyQuery, planned: Planned, known: Explained) -> Explained:
    events: list[Event] = []
    unsubscribe = engine.subscribe(events.append)
    try:
        with engine.start(query, planned) as running:
            for _ in running:
                pass
    finally:
        unsubscribe()
    ran = running.graph()
    decided = ran is not None and (ran.notes or any(stage.decisions for stage in ran.stages))
    return replace(
        known,
        distribution=replace(known.distribution, graph=ran) if decided else known.distribution,
        reports=running.reports(),
        feeds=running.feeds(),
        events=_events_of(running, events),
    )


def _events_of(running: RunningQuery, events: Sequence[Event]) -> list[Event]:
    """Those of the query, and not of others that ran at the same time. A statement that writes runs a query of its
    own."""
    own = {report.key.query for report in running.reports()} or {running.id}
    return [event for event in events if event.query in own]


def _single_node_text(query: LazyQuery) -> str:
    if query.changes is not None:  # planning it may apply it
        return query.inner.optimized_logical_plan().display_indent()
    return query.inner.execution_plan().display_indent()
