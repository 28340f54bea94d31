"""Check the bytes of another process's plan before anything decodes them: every field of every message must be
known."""

from __future__ import annotations

from typing import NamedTuple

from sparkfusion.errors import UserError
from sparkfusion.plan.wire.fields import BYTES, raw_fields
from sparkfusion.plan.wire.format import EXPR, EXPR_ID, FORMAT, FUNCTION, MANY, NUMBER, ONE_OF, PLAN, VALUES
from sparkfusion.plan.wire.wire_pb2 import PlanNode

_ANY = -1  # the place of fields that may be repeated
_BYTES = frozenset({BYTES})
_NUMBER = frozenset({0, 1, 5})
_LOOKED_INTO = FORMAT.keys() - VALUES.keys()


class UnknownPlanError(UserError):
    """A plan has something that is not in the format, so its effect is unknown."""


class _Rule(NamedTuple):
    """How a field is checked. `place`: fields of one message with the same place exclude each other."""

    kind: str
    place: int
    wires: frozenset[int]


def functions_in(plan: bytes) -> int:
    """How many pickled functions are in a plan. Raises if it has a field that is not in the format, or a field twice.

    A field that comes twice may be read differently by different decoders, and no encoder writes one.
    """
    functions = 0
    waiting = [(PLAN, 0, len(plan))]
    while waiting:
        message, start, stop = waiting.pop()
        rules = _RULES[message]
        seen = set()
        for number, wire, begin, end in raw_fields(plan, start, stop):
            rule = rules.get(number)
            if rule is None or wire not in rule.wires:
                raise UnknownPlanError(_unknown(message, number))
            kind, place, _ = rule
            if place != _ANY:
                if place in seen:
                    raise UnknownPlanError(f"the plan repeats field {number} of {message}, which the worker refuses")
                seen.add(place)
            if kind in _LOOKED_INTO:
                waiting.append((kind, begin, end))
            elif kind == FUNCTION and begin < end:
                functions += 1
    return functions


def _rule(message: str, number: int, kind: str) -> _Rule:
    many = kind.endswith(MANY)
    kind = kind.removesuffix(MANY)
    one_of = message in ONE_OF and (message, number) != (EXPR, EXPR_ID)
    wires = _BYTES if kind != NUMBER else _NUMBER | _BYTES if many else _NUMBER
    return _Rule(kind, _ANY if many else 0 if one_of else number, wires)


_RULES = {
    message: {number: _rule(message, number, kind) for number, kind in fields.items()}
    for message, fields in FORMAT.items()
}


def _unknown(message: str, number: int) -> str:
    node = PlanNode.DESCRIPTOR.fields_by_number.get(number) if message == PLAN else None
    if node is not None:
        return f"a worker does not run plans with a node of kind {node.name!r}"
    return f"the plan has the unknown field {number} of {message}, which the worker refuses"
