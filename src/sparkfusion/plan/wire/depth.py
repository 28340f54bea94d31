"""How deep a plan is, measured on its bytes: decoding, running and dropping a plan are all recursive.

There are two limits. Protobuf decoders raise an error at 100 nested messages, which ends the query. And a chain like `a
+ b + c + …` is written flat, but decoded to a tree as deep as the chain is long. That overflows a thread's stack and
ends the process: measured with DataFusion 55 at 1,000 to 2,000 levels on DataFusion's own threads (2 MiB each).
"""

from __future__ import annotations

from sparkfusion.errors import PlanTooDeepError
from sparkfusion.plan.wire.fields import BYTES, raw_fields
from sparkfusion.plan.wire.format import BINARY, FORMAT, MANY, OPERANDS, PLAN

MOST_NESTED = 98
"""The most nested messages; a plan node is two of them, and so is an expression."""
MOST_LEVELS = 300
"""The most levels, if every link of a chain counts as one."""
_LEAST_BYTES = 2  # the size of the smallest nested message


def too_deep() -> PlanTooDeepError:
    return PlanTooDeepError(
        f"the plan is nested too deep: over {MOST_NESTED} messages, or {MOST_LEVELS} levels of expressions",
        hint="split long chains of operators, or nested queries, into steps that are stored",
    )


def check_depth(plan: bytes) -> None:
    """Raise `PlanTooDeepError` if it is not safe to decode a plan. Iterative; looks only into fields that can be too
    deep."""
    waiting = [(PLAN, 0, len(plan), 1, 1)]
    while waiting:
        message, start, end, nested, levels = waiting.pop()
        if nested > MOST_NESTED or levels > MOST_LEVELS:
            raise too_deep()
        known = FORMAT[message]
        inner = [
            (known[number].removesuffix(MANY), number, begin, stop)
            for number, wire, begin, stop in raw_fields(plan, start, end)
            if wire == BYTES and number in known
        ]
        chain = sum(number == OPERANDS for _, number, _, _ in inner) if message == BINARY else 0
        nested, levels = nested + 1, levels + max(1, chain)
        held = min(MOST_NESTED - nested, MOST_LEVELS - levels) * _LEAST_BYTES  # fewer bytes cannot exceed the limits
        waiting += [
            (kind, begin, stop, nested, levels)
            for kind, _, begin, stop in inner
            if kind in FORMAT and stop - begin >= held + _LEAST_BYTES
        ]
