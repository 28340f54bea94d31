"""The EXPLAIN statement: its formats, and the rows that it returns."""

from __future__ import annotations

import datafusion
import pyarrow as pa

from sparkfusion.errors import UserError
from sparkfusion.observe.explain_formats import ExplainFormat
from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.engine import Engine
from sparkfusion.session.explaining import explain_query
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.statements import ExplainText

_OURS: dict[str, ExplainFormat] = {"indent": "text", "text": "text", "json": "json", "dot": "dot", "html": "html"}
_OF_DATAFUSION = ("tree", "pgjson", "graphviz")
_FORMAT = "datafusion.explain.format"
_NO_LOGICAL_PLAN = "datafusion.explain.physical_plan_only"
_RUN_AT_ONCE = ("Create", "Drop", "Set", "Reset", "Prepare", "Execute", "Deallocate", "Transaction")


def words_for_datafusion(asked: ExplainText) -> str:
    """The words before the statement as DataFusion gets them: it knows its own formats only."""
    if asked.format is not None and asked.format not in (*_OURS, *_OF_DATAFUSION):
        hint = f"the distributed plan has {', '.join(_OURS)}; DataFusion's plan has {', '.join(_OF_DATAFUSION)}"
        raise UserError(f"EXPLAIN has no format {asked.format!r}", hint=hint)
    return asked.words_with_format if asked.format in _OF_DATAFUSION else asked.words


def is_planned(target: datafusion.LogicalPlan) -> bool:
    """Whether the statement has a physical plan. DDL and the like have none."""
    return not _kind(target).startswith(_RUN_AT_ONCE)


def is_copy(target: datafusion.LogicalPlan) -> bool:
    return _kind(target) == "CopyTo"


def explain_rows(engine: Engine, explained: datafusion.DataFrame, query: LazyQuery, asked: ExplainText) -> pa.Table:
    """The rows of an EXPLAIN. The last one is the distributed plan.

    A statement that writes is planned only to run it, because planning some of them applies them. EXPLAIN ANALYZE runs
    it once. DataFusion's EXPLAIN, which plans, is asked about queries only.

    Args:
        explained: the EXPLAIN as DataFusion has it. `query`: what it explains, which has not run yet.
    """
    analyze = _kind(explained.logical_plan()) == "Analyze"
    chosen = asked.format or engine.settings[_FORMAT]
    format = _OURS.get(chosen, "text")
    rows: list[tuple[str, str]] = []
    planned = engine.plan(query)
    runs = analyze and (query.writes or planned.distribution.distributed)
    if analyze and not runs:
        rows = _pairs(engine.start(LazyQuery(explained)).read_all())
    elif analyze and asked.verbose and not query.writes:
        physical = call_datafusion(query.inner.execution_plan).display_indent()
        rows = [_logical_plan(explained), ("physical_plan", physical)]
    elif not analyze and not query.writes and (asked.verbose or chosen in _OF_DATAFUSION):
        rows = _pairs(datafusion_rows(explained))
    elif not analyze and format == "text" and engine.settings[_NO_LOGICAL_PLAN] != "true":
        rows = [_logical_plan(explained)]
    rows.append(("distributed_plan", explain_query(engine, query, planned, analyze=runs, format=format)))
    return pa.table({"plan_type": [kind for kind, _ in rows], "plan": [plan for _, plan in rows]})


def datafusion_rows(explained: datafusion.DataFrame) -> pa.Table:
    rows: pa.Table = call_datafusion(explained.to_arrow_table)
    return rows


def _logical_plan(explained: datafusion.DataFrame) -> tuple[str, str]:
    (optimized,) = call_datafusion(explained.optimized_logical_plan).inputs()
    return "logical_plan", optimized.display_indent()


def _pairs(rows: pa.Table) -> list[tuple[str, str]]:
    return list(zip(rows["plan_type"].to_pylist(), rows["plan"].to_pylist(), strict=True))


def _kind(plan: datafusion.LogicalPlan) -> str:
    return type(plan.to_variant()).__name__
