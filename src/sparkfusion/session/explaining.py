"""How a query runs, as text: `DataFrame.explain`, and the EXPLAIN statement with DataFusion's own rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import datafusion
import pyarrow as pa

from sparkfusion.errors import UserError
from sparkfusion.observe.explain import render_explain
from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.engine import Engine
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.planner import Planned

ExplainFormat = Literal["text", "json", "dot"]
_RUN_AT_ONCE = ("Create", "Drop", "Set", "Reset", "Prepare", "Execute", "Deallocate", "Transaction")


def explain_query(
    engine: Engine,
    query: LazyQuery,
    planned: Planned | None = None,
    *,
    analyze: bool = False,
    format: ExplainFormat = "text",
) -> str:
    """The stage tree of a query; with `analyze`, the query is run, and the tree shows what each stage did."""
    if format not in get_args(ExplainFormat):
        raise UserError(f"explain has the formats {', '.join(get_args(ExplainFormat))}, not {format!r}")
    planned = planned or engine.plan(query)
    reports, feeds, distribution = [], [], planned.distribution
    if analyze:
        with engine.start(query, planned) as running:
            for _ in running:
                pass
            reports, feeds, ran = running.reports(), running.feeds(), running.graph()
            if ran is not None and (ran.notes or any(stage.decisions for stage in ran.stages)):
                distribution = replace(distribution, graph=ran)
    return render_explain(
        distribution,
        lambda: _single_node_text(query),
        reports=reports,
        format=format,
        place=engine.describe_runner(distribution.graph),
        feeds=feeds,
        tables=engine.tables.of_catalog.describe(query.source.inner),
    )


def _single_node_text(query: LazyQuery) -> str:
    if query.changes is not None:  # planning it may apply it
        return query.inner.optimized_logical_plan().display_indent()
    return query.inner.execution_plan().display_indent()


def is_planned(target: datafusion.LogicalPlan) -> bool:
    """Whether the statement has a physical plan. DDL and the like have none."""
    return not _kind(target).startswith(_RUN_AT_ONCE)


def is_copy(target: datafusion.LogicalPlan) -> bool:
    return _kind(target) == "CopyTo"


def explain_rows(engine: Engine, explained: datafusion.DataFrame, query: LazyQuery) -> pa.Table:
    """The rows of an EXPLAIN.

    A statement that writes is planned only to run it, because planning some of them applies them. EXPLAIN ANALYZE runs
    it once. DataFusion's EXPLAIN, which plans, is asked about queries only.

    Args:
        explained: the EXPLAIN as DataFusion has it. `query`: what it explains, which has not run yet.
    """
    analyze = _kind(explained.logical_plan()) == "Analyze"
    if analyze and (query.writes or engine.plan(query).distribution.distributed):
        return _rows(["distributed_plan"], [explain_query(engine, query, analyze=True)])
    if query.writes:
        logical = explained.optimized_logical_plan().inputs()[0].display_indent()
        return _rows(["logical_plan", "distributed_plan"], [logical, explain_query(engine, query)])
    rows = engine.start(LazyQuery(explained)).read_all() if analyze else datafusion_rows(explained)
    shown = rows.to_pydict()
    return _rows([*shown["plan_type"], "distributed_plan"], [*shown["plan"], explain_query(engine, query)])


def datafusion_rows(explained: datafusion.DataFrame) -> pa.Table:
    rows: pa.Table = call_datafusion(explained.to_arrow_table)
    return rows


def _kind(plan: datafusion.LogicalPlan) -> str:
    return type(plan.to_variant()).__name__


def _rows(kinds: list[str], plans: list[str]) -> pa.Table:
    return pa.table({"plan_type": kinds, "plan": plans})
