"""Filters of a plan that Spark can evaluate too, before it sends rows.

The plan keeps its own filter, so Spark may let rows through that the filter drops. It must never drop a row that the
filter keeps. Conditions that Spark cannot evaluate in the same way are left out, which lets more rows through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Literal

from google.protobuf.message import DecodeError

from sparkfusion.plan.wire import wire_pb2 as pb

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
ConstantKind = Literal["boolean", "integer", "float", "text", "binary", "date", "decimal", "instant", "wall clock"]


@dataclass(frozen=True)
class Constant:
    """A value that is not NULL, of the column's own type. Dates are days since 1970; instants and local times are
    microseconds since 1970."""

    kind: ConstantKind
    value: bool | int | float | str | bytes | Decimal

    def __str__(self) -> str:
        return repr(self.value) if isinstance(self.value, str | bytes) else str(self.value)


@dataclass(frozen=True)
class Attribute:
    """A column of the table, by its position."""

    name: str
    index: int


@dataclass(frozen=True)
class Compare:
    column: Attribute
    operator: Operator
    constant: Constant

    def __str__(self) -> str:
        return f"{self.column.name} {self.operator} {self.constant}"


@dataclass(frozen=True)
class IsIn:
    column: Attribute
    constants: tuple[Constant, ...]

    def __str__(self) -> str:
        return f"{self.column.name} in ({', '.join(map(str, self.constants))})"


@dataclass(frozen=True)
class IsLike:
    """`pattern` has no escapes: engines differ in what counts as one."""

    column: Attribute
    pattern: str

    def __str__(self) -> str:
        return f"{self.column.name} like {self.pattern!r}"


@dataclass(frozen=True)
class IsNull:
    column: Attribute

    def __str__(self) -> str:
        return f"{self.column.name} is null"


@dataclass(frozen=True)
class IsTrue:
    """The value of a boolean column."""

    column: Attribute

    def __str__(self) -> str:
        return self.column.name


@dataclass(frozen=True)
class Not:
    condition: Condition

    def __str__(self) -> str:
        return f"not ({self.condition})"


@dataclass(frozen=True)
class Every:
    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " and ".join(f"({each})" if isinstance(each, Some) else str(each) for each in self.conditions)


@dataclass(frozen=True)
class Some:
    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return " or ".join(f"({each})" if isinstance(each, Every) else str(each) for each in self.conditions)


Condition = Compare | IsIn | IsLike | IsNull | IsTrue | Not | Every | Some

_MIRRORED: dict[str, Operator] = {"Eq": "=", "NotEq": "!=", "Lt": ">", "LtEq": ">=", "Gt": "<", "GtEq": "<="}
_OPERATORS: dict[str, Operator] = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999
_MOST_CONSTANTS = 1000  # passing one to Spark takes up to a millisecond
_PLAIN: dict[str, ConstantKind] = {
    "boolean": "boolean",
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "integer"),
    **dict.fromkeys(("float32", "float64"), "float"),
    **dict.fromkeys(("utf8", "large_utf8", "utf8_view"), "text"),
    **dict.fromkeys(("binary", "large_binary"), "binary"),
    "date32": "date",
}


@dataclass(frozen=True)
class Reading:
    """The part of a filter that another engine can evaluate. `exact`: it keeps the same rows as the filter, provided
    that the two engines compare single values alike. Floats are never exact."""

    condition: Condition | None
    exact: bool


_NOTHING = Reading(None, exact=False)


def read_condition(expr: bytes, columns: Sequence[Attribute | None]) -> Reading:
    """Decode an encoded expression as far as another engine can evaluate it.

    Args:
        columns: the table's column for each column of the expression; None for computed columns.
    """
    try:
        return _ConditionDecoder(columns).read(pb.Condition.FromString(expr))
    except DecodeError:  # nested too deeply
        return _NOTHING


class _ConditionDecoder:
    def __init__(self, columns: Sequence[Attribute | None]) -> None:
        self._columns = columns

    def read(self, expr: pb.Condition) -> Reading:
        match expr.WhichOneof("kind"):
            case "binary" if expr.binary.op in ("And", "Or"):
                return self._chain(expr.binary)
            case "negation":
                inner = self.read(expr.negation.expr)
                return Reading(Not(inner.condition), exact=True) if inner.exact and inner.condition else _NOTHING
            case "column":
                column = self._column(expr)
                return _NOTHING if column is None else Reading(IsTrue(column), exact=True)
            case "is_null":
                column = self._column(expr.is_null.expr)
                return _NOTHING if column is None else Reading(IsNull(column), exact=True)
            case "is_not_null":
                column = self._column(expr.is_not_null.expr)
                return _NOTHING if column is None else Reading(Not(IsNull(column)), exact=True)
            case "binary":
                return self._comparison(expr.binary)
            case "in_list":
                return self._list(expr.in_list)
            case "like":
                return self._like(expr.like)
        return _NOTHING

    def _chain(self, binary: pb.Binary) -> Reading:
        found = [self.read(each) for each in _operands(binary)]
        asked = tuple(each.condition for each in found if each.condition is not None)
        exact = all(each.exact for each in found)
        if not asked or (binary.op == "Or" and len(asked) < len(found)):
            return _NOTHING
        if len(asked) == 1:
            return Reading(asked[0], exact)
        return Reading(Every(asked) if binary.op == "And" else Some(asked), exact)

    def _comparison(self, binary: pb.Binary) -> Reading:
        if len(_operands(binary)) != 2:  # (a = b) = c is a chain too
            return _NOTHING
        left, right = _operands(binary)
        operators, column, constant = _OPERATORS, self._column(left), _constant(right)
        if column is None:
            operators, column, constant = _MIRRORED, self._column(right), _constant(left)
        if column is None or constant is None or binary.op not in operators:
            return _NOTHING
        return Reading(Compare(column, operators[binary.op], constant), exact=constant.kind != "float")

    def _list(self, expr: pb.InList) -> Reading:
        column, constants = self._column(expr.expr), [_constant(each) for each in expr.list]
        found = tuple(each for each in constants if each is not None)
        exact = not any(each.kind == "float" for each in found)
        if column is None or not found or len(found) < len(constants) or (expr.negated and not exact):
            return _NOTHING
        if len(found) > _MOST_CONSTANTS:
            return _NOTHING
        made = IsIn(column, found)
        return Reading(Not(made) if expr.negated else made, exact)

    def _like(self, expr: pb.Like) -> Reading:
        column, pattern = self._column(expr.expr), _constant(expr.pattern)
        if column is None or pattern is None or not isinstance(pattern.value, str):
            return _NOTHING
        if expr.case_insensitive or "\\" in pattern.value:
            return _NOTHING
        made = IsLike(column, pattern.value)
        return Reading(Not(made) if expr.negated else made, exact=True)

    def _column(self, expr: pb.Condition) -> Attribute | None:
        if expr.WhichOneof("kind") != "column" or expr.column.index >= len(self._columns):
            return None
        return self._columns[expr.column.index]


def _operands(binary: pb.Binary) -> list[pb.Condition]:
    return list(binary.operands) or [binary.left, binary.right]


def _constant(expr: pb.Condition) -> Constant | None:
    """The literal's value; None for a NULL, and for a type that both engines may compare differently."""
    if expr.WhichOneof("kind") != "literal":
        return None
    name = expr.literal.WhichOneof("kind")
    if name in _PLAIN:
        return Constant(_PLAIN[name], getattr(expr.literal, name))
    if name == "decimal128":
        unscaled = int.from_bytes(expr.literal.decimal128.value, "big", signed=True)
        exact = Context(prec=80)
        return Constant("decimal", Decimal(unscaled).scaleb(-expr.literal.decimal128.scale, exact))
    if name == "timestamp" and expr.literal.timestamp.WhichOneof("unit") is not None:
        moment = expr.literal.timestamp
        if _EARLIEST <= moment.microseconds <= _LATEST:
            return Constant("instant" if moment.timezone else "wall clock", moment.microseconds)
    return None
