"""The EXPLAIN statement: DataFusion's own rows, and the stage tree as one more."""

from __future__ import annotations

import datafusion
import pyarrow as pa

from sparkfusion.session.frame import DataFrame
from sparkfusion.session.verbs import call_datafusion

_RUN_AT_ONCE = ("Create", "Drop", "Set", "Reset", "Prepare", "Execute", "Deallocate", "Transaction")


def is_planned(target: datafusion.LogicalPlan) -> bool:
    """Whether the statement has a physical plan. DDL and the like have none."""
    return not _kind(target).startswith(_RUN_AT_ONCE)


def is_copy(target: datafusion.LogicalPlan) -> bool:
    return _kind(target) == "CopyTo"


def explain_rows(explained: DataFrame, frame: DataFrame) -> pa.Table:
    """The rows of an EXPLAIN.

    A statement that writes is planned only to be run, which EXPLAIN ANALYZE does, once: some are applied by planning
    them. So DataFusion's EXPLAIN, which plans, is asked about queries only.

    Args:
        explained: the statement as DataFusion has it.
        frame: what it explains, not run yet.
    """
    analyze = _kind(explained.logical_plan()) == "Analyze"
    if analyze and (frame.writes or frame.distribution().distributed):
        return _rows(["distributed_plan"], [frame.explain_text(analyze=True)])
    if frame.writes:
        logical = explained.to_datafusion().optimized_logical_plan().inputs()[0].display_indent()
        return _rows(["logical_plan", "distributed_plan"], [logical, frame.explain_text()])
    rows = explained.collect() if analyze else datafusion_rows(explained)
    shown = rows.to_pydict()
    return _rows([*shown["plan_type"], "distributed_plan"], [*shown["plan"], frame.explain_text()])


def datafusion_rows(explained: DataFrame) -> pa.Table:
    rows: pa.Table = call_datafusion(explained.to_datafusion().to_arrow_table)
    return rows


def _kind(plan: datafusion.LogicalPlan) -> str:
    return type(plan.to_variant()).__name__


def _rows(kinds: list[str], plans: list[str]) -> pa.Table:
    return pa.table({"plan_type": kinds, "plan": plans})
