"""The gate: refuse plans that are not safe to distribute. They run on a single node, with the reason given here.

Refusing too much is safe. Accepting a plan that changes when it is encoded or isolated is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparkfusion.formats import compression_of
from sparkfusion.plan.stage import Why
from sparkfusion.plan.subqueries import has_unproven_scalar_subquery
from sparkfusion.plan.wire import PlanNode, file_scan_conf, kind, walk


class NotDistributableError(Exception):
    """Raised while planning; its text is the reason that `explain` and the query's events show."""

    def __init__(self, reason: str, why: Why = Why.REFUSED) -> None:
        super().__init__(reason)
        self.why = why


LOST = "is lost when the plan is encoded"
"""The end of reasons about options that a plan's encoding loses."""
HALF_FLOAT = "Float16"
_WRITES = "an encoded plan lacks options of the writer, so the write is not sent to tasks"
_REFUSED = {
    "unknown": "the plan has a node that this version of sparkfusion does not know",
    "extension": "the plan has an extension node",
    "explain": "EXPLAIN is not distributed",
    "analyze": "EXPLAIN ANALYZE is not distributed",
    "symmetric_hash_join": "a join of unbounded streams cannot be split into tasks",
    "scalar_subquery": "a physical scalar subquery cannot be separated from the operator that uses it",
    "parquet_sink": _WRITES,
    "csv_sink": _WRITES,
    "json_sink": _WRITES,
    "generate_series": "generate_series loses its projection when the plan is encoded",
    "async_func": "an asynchronous function runs in the process that defined it",
}

_NODE_LINE = re.compile(r"^\s*[A-Z]\w*(?: [A-Z]\w*)*(?::|$| )")
_ARROW_STREAM = re.compile(r"^\s*DataSourceExec: .*\bfile_type=arrow_stream\b")
_HALF_FLOAT_LITERAL = re.compile(rf"\b{HALF_FLOAT}\((?!NULL\))")
_LOSSY_WINDOW = (
    (re.compile(r"\bFILTER \(WHERE "), "FILTER on a window function is lost when the plan is encoded"),
    (re.compile(r"IGNORE NULLS"), "IGNORE NULLS on a window function is lost when the plan is encoded"),
)


def check_logical(plan_text: str, lossy_tables: Mapping[str, str]) -> None:
    """Refuse what can be seen only before encoding (docs/traps.md#lost-options).

    Args:
        plan_text: the logical plan as DataFusion prints it, subqueries included.
        lossy_tables: the tables of this query whose scan options are lost on the wire, with what is lost.
    """
    lines = plan_text.splitlines()
    # A literal with a line break makes lines that are not nodes. Then a mark may be anywhere in the text.
    one_node_a_line = all(_NODE_LINE.match(line) for line in lines)
    if any("WindowAggr:" in line for line in lines):
        windows = [line for line in lines if "WindowAggr:" in line] if one_node_a_line else [plan_text]
        for mark, reason in _LOSSY_WINDOW:
            if any(mark.search(window) for window in windows):
                raise NotDistributableError(reason)
    if has_unproven_scalar_subquery(lines) or (not one_node_a_line and "<subquery>" in plan_text):
        raise NotDistributableError("a scalar subquery may return several rows; in tasks this error would go unnoticed")
    for table, lost in lossy_tables.items():
        raise NotDistributableError(f"table {table!r}: {lost} {LOST}")


def check_literals(description: str) -> None:
    """Refuse half-float literals: in an encoded plan they become Float32. Columns keep their type.

    Args:
        description: the logical plan after DataFusion has optimized it, which is when literals have their types.
    """
    if _HALF_FLOAT_LITERAL.search(description):
        raise NotDistributableError(f"the query has a {HALF_FLOAT} literal; an encoded plan would make it Float32")


def check_arrow_scans(root: PlanNode, plan_text: str) -> None:
    """Refuse Arrow files in the stream format: a decoded scan assumes the file format.

    Args:
        plan_text: the plan as DataFusion prints it, which is where the format shows.
    """
    streams = [line for line in plan_text.splitlines() if _ARROW_STREAM.search(line)]
    for node in walk(root):
        if streams and kind(node) == "arrow_scan":
            first = next((file.path for group in node.arrow_scan.base_conf.file_groups for file in group.files), None)
            if first is not None and any(f"[[{first}" in line for line in streams):
                name = first.rpartition("/")[2]
                raise NotDistributableError(
                    f"{name!r} is an Arrow file in the stream format, which is lost when the plan is encoded"
                )


def check_physical(root: PlanNode) -> None:
    """Refuse every node and option that is lost when the plan is encoded, or that is not safe in isolated tasks."""
    for node in walk(root):
        name = kind(node)
        if name in _REFUSED:
            raise NotDistributableError(_REFUSED[name])
        if name == "repartition":
            _check_repartition(node)
        if name == "aggregate" and node.aggregate.has_grouping_set and not node.aggregate.group_expr:
            raise NotDistributableError("GROUPING SETS (()) is lost when the plan is encoded")
        _check_scan(node, name)


def _check_repartition(node: PlanNode) -> None:
    if node.repartition.preserve_order:
        raise NotDistributableError("a repartition that merges sorted inputs cannot be distributed")
    if node.repartition.partitioning.WhichOneof("method") == "range":
        raise NotDistributableError("range partitioning cannot be distributed")


def _check_scan(node: PlanNode, name: str) -> None:
    conf = file_scan_conf(node)
    if conf is None:
        return
    if conf.HasField("output_partitioning"):
        raise NotDistributableError("a table's scan fixes how its files are partitioned, so tasks cannot share it")
    if name in ("csv_scan", "json_scan"):
        for group in conf.file_groups:
            for file in group.files:
                if compression_of(file.path) is not None:
                    raise NotDistributableError(f"compression of {file.path!r} {LOST}")
