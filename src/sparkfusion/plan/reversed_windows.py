"""Window functions over rows in the opposite order.

If rows are already sorted by `v`, DataFusion does not sort them again for `lag(x) over (order by v desc)`. It reverses
the function instead: `lag` then looks ahead. An encoded plan has the reversed order and the reversed frame, but not
that `lag`, `lead` and `nth_value` are reversed; so a task would look in the wrong direction. See
docs/traps.md#reversed-windows.
"""

from __future__ import annotations

import re

from sparkfusion.plan.gate import LOST, NotDistributableError
from sparkfusion.plan.wire import PlanNode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb

_OPPOSITE = {"lag": "lead", "lead": "lag", "nth_value": "nth_value"}
_LAST_KEY = re.compile(r" (ASC|DESC) NULLS (FIRST|LAST)\] (?:ROWS|RANGE|GROUPS) BETWEEN [^\[\]]*$")


def write_reversal(root: PlanNode) -> bool:
    """Replace reversed functions by equivalent functions that are not reversed, in place. Returns whether there were
    any.

    Raises `NotDistributableError` if it is unknown whether a function is reversed, or which function is equivalent.
    """
    found = [
        function
        for node in walk(root)
        if kind(node) == "window"
        for function in node.window.function
        if function.function in _OPPOSITE and function.order_by and _is_reversed(function)
    ]
    for function in found:
        if function.function == "nth_value":
            _count_from_the_other_end(function)
        function.function = _OPPOSITE[function.function]
    return bool(found)


def _is_reversed(function: pb.WindowFunction) -> bool:
    """Whether the sort directions are the opposite of those in the column's name, which repeats the query's ORDER BY.
    Reversing changes the direction of every key."""
    asked = _LAST_KEY.search(function.column)
    has = function.order_by[-1].asc, function.order_by[-1].nulls_first
    if asked is not None:
        wanted = asked[1] == "ASC", asked[2] == "FIRST"
        if has == wanted:
            return False
        if has == (not wanted[0], not wanted[1]):
            return True
    raise _refusal(function)


def _count_from_the_other_end(function: pb.WindowFunction) -> None:
    if len(function.argument) != 2 or function.argument[1].WhichOneof("kind") != "literal":
        raise _refusal(function)
    number = pb.Value.FromString(function.argument[1].literal)
    if number.WhichOneof("kind") != "int64":
        raise _refusal(function)
    number.int64 = -number.int64  # DataFusion refuses the one number that cannot be negated
    function.argument[1].literal = number.SerializeToString()


def _refusal(function: pb.WindowFunction) -> NotDistributableError:
    return NotDistributableError(f"the direction of {function.function} {LOST}")
