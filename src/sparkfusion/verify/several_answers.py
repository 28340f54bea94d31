"""Find out whether a query has more than one right answer. Used only after a comparison failed."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
from datafusion import LogicalPlan, SessionConfig, SessionContext

from sparkfusion.session.sql_text import closing_parenthesis
from sparkfusion.verify.compare import compare_tables
from sparkfusion.verify.compare_options import CompareOptions
from sparkfusion.verify.limits import inner_limits, limit_choice, outermost_limit

_VOLATILE = re.compile(r"\b(?:(?:random|uuid|now|current_timestamp|current_date|current_time|today)\(\)|shuffle\()")
_ORDER_SENSITIVE = re.compile(r"\b(first_value|last_value|nth_value|array_agg|string_agg|collect_list|collect_set)\(")
_LISTS = frozenset({"array_agg", "collect_list", "collect_set"})
_ORDERED = re.compile(r"\s*(FILTER \(.*?\)\s*)?((IGNORE|RESPECT) NULLS\s*)?(PARTITION BY \[.*?\]\s*)?ORDER BY \[")
_LITERAL = re.compile(r'Utf8(View)?\("(?:[^"\\]|\\.)*"\)')
_LIMIT_LINE = re.compile(r"^\s*Limit: ", re.MULTILINE)

OTHER_PARTITIONINGS: tuple[Mapping[str, str], ...] = (
    {"datafusion.execution.target_partitions": "1", "datafusion.execution.batch_size": "64"},
    {"datafusion.execution.target_partitions": "5"},
)
"""Settings that must not change an answer."""


def reason_in_plan(plan: LogicalPlan, context: SessionContext, options: CompareOptions) -> str | None:
    """Why a query with this logical plan has no single right answer, read from the plan; None if the plan shows no
    reason.

    The outermost limit does not count, because `limits` handles it. An inner limit is run on a single node. It is not a
    reason if it cuts between different sort keys, or between equal rows.
    """
    text = _LITERAL.sub("", plan.display_indent())
    volatile = _VOLATILE.search(text)
    if volatile is not None:
        return f"{volatile.group(0).rstrip('(')} gives other values on every run"
    sensitive = _unordered_aggregate(text, options)
    if sensitive is not None:
        return sensitive
    return _open_limit(plan, text, context, options)


def _unordered_aggregate(text: str, options: CompareOptions) -> str | None:
    for found in _ORDER_SENSITIVE.finditer(text):
        name = found.group(1)
        if name in _LISTS and options.unordered_lists:
            continue
        closing = closing_parenthesis(text, found.end())
        if closing is None or not _ORDERED.match(text, closing + 1):
            hint = "; compare with unordered_lists=True" if name in _LISTS else ""
            return f"{name} without ORDER BY depends on the order in which rows arrive{hint}"
    return None


def _open_limit(plan: LogicalPlan, text: str, context: SessionContext, options: CompareOptions) -> str | None:
    outermost = outermost_limit(plan)
    inner = list(inner_limits(plan if outermost is None else outermost.plan))
    seen = len(inner) + (outermost is not None)
    if len(_LIMIT_LINE.findall(text)) > seen:
        return "a LIMIT inside a subquery expression may choose other rows"
    for limit in inner:
        try:
            choice = limit_choice(limit, context, options)
        except Exception as error:  # DataFusion raises plain exceptions; undecided is not "no reason"
            return f"cannot tell whether a LIMIT inside the query chooses freely: {error}"
        if choice.is_open(options):
            return f"a LIMIT inside the query chooses freely among {choice.may.num_rows} tied rows"
    return None


def reason_in_answers(
    plan: LogicalPlan, settings: Mapping[str, str], answer: pa.Table | None, options: CompareOptions
) -> str | None:
    """Run the plan again on a single node with other partitionings. Different answers prove that it has several right
    ones.

    This finds reasons that a plan does not show: window functions over ties, volatile Python functions.
    """
    for change in OTHER_PARTITIONINGS:
        try:
            context = SessionContext(SessionConfig({**settings, **change}))
            again = context.create_dataframe_from_logical_plan(plan).to_arrow_table()
        except Exception:  # not runnable outside its session, so it proves nothing
            return None
        if answer is None:
            answer = again
        elif not compare_tables(answer, again, options).equal:
            shown = ", ".join(f"{name}={value}" for name, value in change.items())
            return f"single-node DataFusion itself gives another answer with {shown}"
    return None
