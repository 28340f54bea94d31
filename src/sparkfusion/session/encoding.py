"""Encode a plan, or say why it cannot be encoded."""

from __future__ import annotations

import re

from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.errors import first_words
from sparkfusion.plan.gate import NotDistributableError
from sparkfusion.plan.sizing import scan_bytes
from sparkfusion.plan.wire import decode

_SMALL_LEAVES = ("StreamingTableExec", "WorkTableExec")
_ANY_SIZE = 1 << 60
_UNSUPPORTED_OPERATOR = re.compile(r"Unsupported plan and extension codec failed.*?Plan: (\w+)", re.DOTALL)


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
