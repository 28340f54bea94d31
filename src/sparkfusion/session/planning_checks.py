"""Find out whether DataFusion can plan and encode a query for tasks; if it cannot, or need not, the reason in words."""

from __future__ import annotations

import re

import datafusion
from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.config.setting_list import TARGET_PARTITIONS
from sparkfusion.errors import SparkfusionError, first_words, panics_as_errors
from sparkfusion.plan.gate import NotDistributableError
from sparkfusion.plan.sizing import scan_bytes
from sparkfusion.plan.wire import decode

_SUBQUERY_LEFT = "Physical plan does not support logical expression ScalarSubquery"
_NO_JOIN = "DataFusion cannot plan a scalar subquery in ORDER BY, GROUP BY, ON, an aggregate or a window as a join"
_SMALL_LEAVES = ("StreamingTableExec", "WorkTableExec")
_ANY_SIZE = 1 << 60
_UNSUPPORTED_OPERATOR = re.compile(r"Unsupported plan and extension codec failed.*?Plan: (\w+)", re.DOTALL)


def single_node_plans(dataframe: datafusion.DataFrame) -> bool:
    """Whether DataFusion can plan a query with the session's own options, and not those for isolated tasks."""
    try:
        with panics_as_errors():
            dataframe.execution_plan()
    except Exception:
        return False
    return True


def why_not_planned(error: SparkfusionError) -> str:
    """The reason if DataFusion can plan a query only without the options that are safe for isolated tasks."""
    if _SUBQUERY_LEFT in error.message:
        return _NO_JOIN
    return f"DataFusion cannot plan it for isolated tasks: {first_words(error)}"


def too_small(scanned: int, upper: int) -> str:
    """The reason if a query is too small for more than one partition."""
    if upper == 1:
        return f"{TARGET_PARTITIONS} is 1"
    if scanned == 0:
        return "it reads no data: metadata or constants answer it"
    return f"it reads {scanned:,} bytes, too little to split into two tasks (sparkfusion.bytes_per_partition)"


def encode_plan(plan: ExecutionPlan, context: SessionContext) -> bytes:
    try:
        return plan.to_bytes(context)
    except Exception as error:
        raise NotDistributableError(_why_not_encoded(error)) from None


def leaf_bytes(leaf: ExecutionPlan, context: SessionContext) -> int:
    """How many bytes a leaf reads. A leaf that cannot be encoded counts as large, except DataFusion's own tables of
    names and the rows of a recursion."""
    try:
        return scan_bytes(decode(encode_plan(leaf, context)))
    except NotDistributableError:
        return 0 if leaf.display().startswith(_SMALL_LEAVES) else _ANY_SIZE


def _why_not_encoded(error: Exception) -> str:
    operator = _UNSUPPORTED_OPERATOR.search(str(error))
    if operator is not None:
        return f"{operator[1]} cannot be encoded"
    return f"the plan cannot be encoded: {first_words(error)}"
