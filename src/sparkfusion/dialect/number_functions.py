"""Spark's functions of numbers, and functions such as `coalesce` that choose among values."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from sparkfusion.dialect import typed_operators
from sparkfusion.dialect.conversions import coerce_all, convert
from sparkfusion.dialect.function_forms import Form, Special, expect, prepare
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.typed_sql import NULL, Typed
from sparkfusion.dialect.value_types import MOST_DIGITS, cast_sql, kind_of, limited_decimal

_DOUBLE = pa.float64()
_LARGEST_FRACTION = "1e17"
"""Doubles from here on have no digits after the point."""


def _double(name: str, *aliases: str) -> dict[str, tuple[Form, ...]]:
    return dict.fromkeys((name, *aliases), (Form(f"{name}({{0}})", "d", _DOUBLE),))


def _logarithm(name: str, *aliases: str) -> dict[str, tuple[Form, ...]]:
    """A logarithm; NULL for numbers that are not positive."""
    return dict.fromkeys((name, *aliases), (Form(f"case when {{0}} > 0 then {name}({{0}}) end", "d", _DOUBLE),))


_SQUARE_ROOT = Form("case when {0} < 0 then cast('NaN' as double) else sqrt({0}) end", "d", _DOUBLE)
_LOG_OF_BASE = Form("case when {0} > 0 and {1} > 0 then ln({1}) / ln({0}) end", "dd", _DOUBLE)

NUMBER_FORMS: dict[str, tuple[Form, ...]] = {
    "sqrt": (_SQUARE_ROOT,), **_double("cbrt"), **_double("exp"), **_double("degrees"), **_double("radians"),
    **_double("sin"), **_double("cos"), **_double("tan"), **_double("asin"), **_double("acos"), **_double("atan"),
    **_double("sinh"), **_double("cosh"), **_double("tanh"), **_double("signum", "sign"),
    **_logarithm("ln"), **_logarithm("log2"), **_logarithm("log10"),
    "log": (*_logarithm("ln")["ln"], _LOG_OF_BASE),
    "power": (Form("power({0}, {1})", "dd", _DOUBLE),),
    "pow": (Form("power({0}, {1})", "dd", _DOUBLE),),
    "atan2": (Form("atan2({0}, {1})", "dd", _DOUBLE),),
    "pi": (Form("pi()", "", _DOUBLE),),
    "e": (Form("exp(cast(1 as double))", "", _DOUBLE),),
    "isnan": (Form("coalesce(isnan({0}), false)", "d", pa.bool_()),),
    "nanvl": (Form("case when isnan({0}) then {1} else {0} end", "dd", _DOUBLE),),
    "isnull": (Form("({0} is null)", "x", pa.bool_()),),
    "isnotnull": (Form("({0} is not null)", "x", pa.bool_()),),
    "bin": (Form("bin({0})", "l", pa.string()),),
    "bit_count": (Form("bit_count({0})", "l", pa.int32(), cast=True),),
    "factorial": (Form("factorial({0})", "i", pa.int64()),),
    "hex": (Form("hex({0})", "x", pa.string(), cast=True),),
}  # fmt: skip


def _abs(arguments: list[Typed]) -> Typed:
    expect("abs", arguments, 1)
    value = prepare(arguments[0], "n", "abs")
    return Typed(f"abs({value.sql})", value.type)


def _whole(name: str) -> Special:
    """`ceil` and `floor`: a bigint, or a decimal without digits after the point."""

    def write(arguments: list[Typed]) -> Typed:
        if len(arguments) == 2:
            raise refuse(f"{name} with a number of digits", "DataFusion has no equivalent", "scale the number first")
        expect(name, arguments, 1)
        value = prepare(arguments[0], "n", name)
        if kind_of(value.type) == "decimal":
            kind = limited_decimal(value.type.precision - value.type.scale + 1, 0)
            wide = convert(value, pa.decimal128(min(value.type.precision + 1, MOST_DIGITS), value.type.scale))
            return Typed(cast_sql(f"{name}({wide.sql})", kind), kind)
        if kind_of(value.type) == "integer":
            return convert(value, pa.int64())
        return Typed(f"cast({name}({value.sql}) as bigint)", pa.int64())

    return write


def _round(arguments: list[Typed]) -> Typed:
    """`round`: half away from zero, by the printed digits: 1.255 becomes 1.26."""
    expect("round", arguments, 1, 2)
    value = prepare(arguments[0], "n", "round")
    digits = arguments[1].value if len(arguments) == 2 else 0
    if not isinstance(digits, int) or not 0 <= digits <= 20:
        raise refuse("round", "the number of digits has to be a literal from 0 to 20")
    if kind_of(value.type) == "integer":
        return value
    if kind_of(value.type) == "decimal":
        scale = min(digits, value.type.scale)
        kind = limited_decimal(value.type.precision - value.type.scale + scale + 1, scale)
        return convert(value, kind)
    printed = f"cast(cast(cast({value.sql} as varchar) as decimal(38, {digits})) as double)"
    made = f"case when abs({value.sql}) < {_LARGEST_FRACTION} then {printed} else {value.sql} end"
    return Typed(cast_sql(made, value.type), value.type)


def _coalesce(arguments: list[Typed]) -> Typed:
    if not arguments:
        raise wrong("coalesce takes at least one argument")
    values = coerce_all(arguments, "coalesce")
    return Typed(f"coalesce({', '.join(each.sql for each in values)})", values[0].type)


def _nvl2(arguments: list[Typed]) -> Typed:
    expect("nvl2", arguments, 3)
    first, second = coerce_all(arguments[1:], "nvl2")
    return Typed(f"case when {arguments[0].sql} is not null then {first.sql} else {second.sql} end", first.type)


def _nullif(arguments: list[Typed]) -> Typed:
    expect("nullif", arguments, 2)
    same = typed_operators.compare(arguments[0], arguments[1], "=")
    return Typed(f"case when {same.sql} then null else {arguments[0].sql} end", arguments[0].type)


def _extreme(name: str) -> Special:
    """`greatest` and `least` leave NULLs out."""

    def write(arguments: list[Typed]) -> Typed:
        if len(arguments) < 2:
            raise wrong(f"{name} takes at least two arguments")
        values = coerce_all(arguments, name)
        if kind_of(values[0].type) in ("array", "map", "struct"):
            raise refuse(f"{name} of nested values", "DataFusion has no equivalent")
        return Typed(f"{name}({', '.join(each.sql for each in values)})", values[0].type)

    return write


def _try_divide(arguments: list[Typed]) -> Typed:
    expect("try_divide", arguments, 2)
    left, right = (prepare(each, "n", "try_divide") for each in arguments)
    return typed_operators.divide(left, Typed(f"nullif({right.sql}, {convert(_ZERO, right.type).sql})", right.type))


_ZERO = Typed("cast(0 as int)", pa.int32(), 0, constant=True)


def _binary(name: str, write: Callable[[Typed, Typed], Typed]) -> Special:
    def apply(arguments: list[Typed]) -> Typed:
        expect(name, arguments, 2)
        return write(*arguments)

    return apply


def _zero_if_null(arguments: list[Typed]) -> Typed:
    expect("zeroifnull", arguments, 1)
    return _coalesce([arguments[0], _ZERO])


def _negative(arguments: list[Typed]) -> Typed:
    expect("negative", arguments, 1)
    return typed_operators.negate(arguments[0])


def _if(arguments: list[Typed]) -> Typed:
    expect("if", arguments, 3)
    test = prepare(arguments[0], "b", "if")
    first, second = coerce_all(arguments[1:] or [NULL], "if")
    return Typed(f"case when {test.sql} then {first.sql} else {second.sql} end", first.type)


NUMBER_SPECIALS: dict[str, Special] = {
    "abs": _abs,
    "ceil": _whole("ceil"),
    "ceiling": _whole("ceil"),
    "floor": _whole("floor"),
    "round": _round,
    "coalesce": _coalesce,
    "nvl": _coalesce,
    "ifnull": _coalesce,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "if": _if,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "mod": _binary("mod", typed_operators.remainder),
    "pmod": _binary("pmod", typed_operators.positive_remainder),
    "try_divide": _try_divide,
    "zeroifnull": _zero_if_null,
    "negative": _negative,
}
