"""Operators with Spark's meaning: division, checked arithmetic, decimals, comparisons, dates and intervals."""

from __future__ import annotations

import pyarrow as pa

from sparkfusion.dialect.conversions import coerce_all, convert
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.typed_sql import Typed
from sparkfusion.dialect.value_types import (
    MOST_DIGITS,
    TIMESTAMP,
    as_decimal,
    cast_sql,
    common_type,
    is_number,
    kind_of,
    limited_decimal,
    wider_integer,
)

_WIDE = "Decimal256(76, {0})"


def add(left: Typed, right: Typed, sign: str) -> Typed:
    """`+` and `-`, of numbers and of dates and times."""
    kinds = kind_of(left.type), kind_of(right.type)
    if sign == "+" and kinds[0] == "integer" and kinds[1] == "date":
        left, right, kinds = right, left, (kinds[1], kinds[0])
    match kinds:
        case ("date", "integer"):
            return Typed(f"({left.sql} {sign} {convert(right, pa.int32()).sql})", pa.date32())
        case ("date" | "timestamp", "date" | "timestamp") if sign == "-":
            first, second = convert(left, TIMESTAMP), convert(right, TIMESTAMP)
            return Typed(f"({first.sql} - {second.sql})", pa.duration("us"))
    return arithmetic(left, right, sign)


def arithmetic(left: Typed, right: Typed, operator: str) -> Typed:
    """`+`, `-`, `*` of numbers. An integer that does not fit is an error, as under ANSI."""
    left, right = _numbers(left, right, operator)
    kinds = {kind_of(left.type), kind_of(right.type)}
    if kinds == {"integer"}:
        kind = wider_integer(left.type, right.type)
        wide = "decimal(19, 0)" if kind == pa.int64() else "bigint"
        checked = f"cast({left.sql} as {wide}) {operator} cast({right.sql} as {wide})"
        return Typed(f"cast({checked} as {_integer_name(kind)})", kind)
    if "float" in kinds:
        first, second = _both_float(left, right)
        return Typed(f"({first.sql} {operator} {second.sql})", first.type)
    first, second = _both_decimal(left, right)
    kind = _product_type(first.type, second.type) if operator == "*" else _sum_type(first.type, second.type)
    if operator != "*" and kind.precision < MOST_DIGITS:
        sides = f"{convert(first, kind).sql} {operator} {convert(second, kind).sql}"
        return Typed(f"cast({sides} as {_decimal_name(kind)})", kind)
    if operator == "*" and first.type.precision + second.type.precision < MOST_DIGITS:
        return Typed(f"({first.sql} * {second.sql})", kind)
    return Typed(f"cast({_wide(first)} {operator} {_wide(second)} as {_decimal_name(kind)})", kind)


def divide(left: Typed, right: Typed) -> Typed:
    """`/`: a double for integers and floats, a decimal for decimals. Division by zero is an error."""
    left, right = _numbers(left, right, "/")
    if "decimal" in (kind_of(left.type), kind_of(right.type)) and "float" not in (
        kind_of(left.type),
        kind_of(right.type),
    ):
        return _divide_decimals(*_both_decimal(left, right))
    first, second = convert(left, pa.float64()), convert(right, pa.float64())
    return Typed(f"({first.sql} / {_not_zero(first, second, right)})", pa.float64())


def divide_whole(left: Typed, right: Typed) -> Typed:
    """`div`: a bigint, truncated."""
    left, right = _numbers(left, right, "div")
    if {kind_of(left.type), kind_of(right.type)} != {"integer"}:
        raise refuse("div of decimals", "DataFusion has no such division", "use floor or cast the quotient")
    return Typed(f"(cast({left.sql} as bigint) / cast({right.sql} as bigint))", pa.int64())


def remainder(left: Typed, right: Typed) -> Typed:
    """`%`: it has the sign of the left operand."""
    left, right = _numbers(left, right, "%")
    kinds = {kind_of(left.type), kind_of(right.type)}
    if kinds == {"integer"}:
        kind = wider_integer(left.type, right.type)
        return Typed(f"({convert(left, kind).sql} % {convert(right, kind).sql})", kind)
    if "float" in kinds:
        first, second = _both_float(left, right)
        return Typed(f"({first.sql} % {_not_zero(first, second, right)})", first.type)
    first, second = _both_decimal(left, right)
    scale = max(first.type.scale, second.type.scale)
    whole = min(first.type.precision - first.type.scale, second.type.precision - second.type.scale)
    kind = limited_decimal(whole + scale, scale)
    return Typed(f"cast({_wide(first)} % {_wide(second)} as {_decimal_name(kind)})", kind)


def positive_remainder(left: Typed, right: Typed) -> Typed:
    """`pmod`: never negative if the divisor is positive."""
    rest = remainder(left, right)
    divisor = convert(right, rest.type)
    if kind_of(rest.type) != "integer":
        raise refuse("pmod of numbers that are not integers", "its rounding differs", "cast them to bigint")
    wide = f"cast({rest.sql} as bigint)"
    again = f"({wide} + cast({divisor.sql} as bigint)) % cast({divisor.sql} as bigint)"
    return Typed(f"cast(case when {wide} < 0 then {again} else {wide} end as {_integer_name(rest.type)})", rest.type)


def negate(value: Typed) -> Typed:
    kind = kind_of(value.type)
    if kind == "string":
        value = convert(value, pa.float64())
    elif kind not in ("integer", "decimal", "float"):
        raise wrong(f"- takes a number, not {value.type}")
    if isinstance(value.value, int) and value.constant and -value.value < 2**31:
        return Typed(f"cast({-value.value} as {_integer_name(value.type)})", value.type, -value.value, constant=True)
    return Typed(f"(- {value.sql})", value.type)


def compare(left: Typed, right: Typed, operator: str) -> Typed:
    """A comparison, in the common type of both sides."""
    if "map" in (kind_of(left.type), kind_of(right.type)):
        raise refuse("a comparison of maps", "Spark does not compare them either")
    if common_type(left.type, right.type) is None and left.type != right.type:
        raise wrong(f"{left.type} and {right.type} cannot be compared", "cast one of them")
    first, second = coerce_all([left, right], f"operator {operator}")
    return Typed(f"({first.sql} {operator} {second.sql})", pa.bool_())


def bitwise(left: Typed, right: Typed, operator: str) -> Typed:
    if {kind_of(left.type), kind_of(right.type)} != {"integer"}:
        raise wrong(f"{operator} takes integers, not {left.type} and {right.type}")
    kind = wider_integer(left.type, right.type)
    return Typed(f"({convert(left, kind).sql} {operator} {convert(right, kind).sql})", kind)


def shift(left: Typed, right: Typed, operator: str) -> Typed:
    """`<<` and `>>` of an int or a bigint, by a literal that is less than its number of bits."""
    if {kind_of(left.type), kind_of(right.type)} != {"integer"}:
        raise wrong(f"{operator} takes integers, not {left.type} and {right.type}")
    kind = pa.int64() if left.type == pa.int64() else pa.int32()
    if not isinstance(right.value, int) or not 0 <= right.value < kind.bit_width:
        raise refuse(f"{operator} by anything but a literal below {kind.bit_width}", "shifts by more differ")
    return Typed(f"({convert(left, kind).sql} {operator} {convert(right, kind).sql})", kind)


def _numbers(left: Typed, right: Typed, operator: str) -> tuple[Typed, Typed]:
    """Both operands as numbers; strings are cast by Spark's ANSI rules."""
    return _number(left, right, operator), _number(right, left, operator)


def _number(value: Typed, other: Typed, operator: str) -> Typed:
    if is_number(value.type):
        return value
    if kind_of(value.type) == "null" and (is_number(other.type) or kind_of(other.type) == "null"):
        kind = other.type if is_number(other.type) else pa.float64()
        return convert(value, kind)
    if kind_of(value.type) == "string":
        number = common_type(value.type, other.type) if is_number(other.type) else pa.float64()
        assert number is not None
        return convert(value, number)
    raise wrong(f"{operator} takes numbers, not {value.type}", "cast it")


def _both_float(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    kind = common_type(left.type, right.type)
    assert kind is not None
    return convert(left, kind), convert(right, kind)


def _both_decimal(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    return _decimal(left), _decimal(right)


def _decimal(value: Typed) -> Typed:
    """A number as a decimal. The precision of a literal is its number of digits."""
    if kind_of(value.type) == "decimal":
        return value
    if value.constant and isinstance(value.value, int):
        return convert(value, pa.decimal128(len(str(abs(value.value))), 0))
    return convert(value, as_decimal(value.type))


def _sum_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    scale = max(left.scale, right.scale)
    return limited_decimal(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def _product_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return limited_decimal(left.precision + right.precision + 1, left.scale + right.scale)


def _divide_decimals(left: Typed, right: Typed) -> Typed:
    """Divide decimals with Spark's precision and rounding. DataFusion truncates, so it divides with more digits than
    the result has."""
    scale = max(6, left.type.scale + right.type.precision + 1)
    whole = left.type.precision - left.type.scale + right.type.scale
    kind = limited_decimal(whole + scale, scale)
    digits = max(kind.scale, left.type.scale)  # DataFusion's quotient has four more digits
    numerator = f"arrow_cast({left.sql}, '{_WIDE.format(digits)}')"
    divisor = f"arrow_cast({right.sql}, '{_WIDE.format(right.type.scale)}')"
    return Typed(f"cast({numerator} / {divisor} as {_decimal_name(kind)})", kind)


def _not_zero(dividend: Typed, divisor: Typed, original: Typed) -> str:
    """The divisor, with an error if it is zero: DataFusion's floats would become infinite. NULL divided by zero is
    NULL."""
    if original.constant and original.value:
        return divisor.sql
    failing = cast_sql(f"1 / cast({divisor.sql} as bigint)", divisor.type)
    return f"case when {divisor.sql} = 0 and {dividend.sql} is not null then {failing} else {divisor.sql} end"


def _wide(value: Typed) -> str:
    return f"arrow_cast({value.sql}, '{_WIDE.format(value.type.scale)}')"


def _decimal_name(kind: pa.DataType) -> str:
    return f"decimal({kind.precision}, {kind.scale})"


def _integer_name(kind: pa.DataType) -> str:
    return {pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint"}[kind]
