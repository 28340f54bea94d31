"""Spark's aggregates and window functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from sparkfusion.dialect.conversions import convert
from sparkfusion.dialect.function_forms import expect, prepare
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.typed_sql import Typed
from sparkfusion.dialect.value_types import MOST_DIGITS, cast_sql, kind_of, limited_decimal

_INT, _BIGINT, _DOUBLE = pa.int32(), pa.int64(), pa.float64()


@dataclass(frozen=True)
class AggregateCall:
    """A call that FILTER and OVER may follow.

    Attributes:
        outer: the expression around the call, with `{0}` for the call.
        only: a condition for the rows that count, in addition to the user's own FILTER.
    """

    call: str
    type: pa.DataType
    outer: str = "{0}"
    only: str | None = None

    def finish(self, text: str) -> Typed:
        return Typed(self.outer.format(text), self.type)


Writer = Callable[[list[Typed], str], AggregateCall]
"""(arguments, `distinct ` or an empty string) → the call."""


def _count(arguments: list[Typed], distinct: str) -> AggregateCall:
    if len(arguments) == 1:
        return AggregateCall(f"count({distinct}{arguments[0].sql})", _BIGINT)
    expect("count", arguments, *range(2, 100))
    known = " and ".join(f"{each.sql} is not null" for each in arguments)
    if not distinct:
        return AggregateCall("count(*)", _BIGINT, only=known)
    fields = ", ".join(f"'c{n}', {each.sql}" for n, each in enumerate(arguments))
    return AggregateCall(f"count(distinct named_struct({fields}))", _BIGINT, only=known)


def _sum(arguments: list[Typed], distinct: str) -> AggregateCall:
    """A sum that does not fit its type is an error, as under ANSI; in DataFusion it would wrap around."""
    expect("sum", arguments, 1)
    value = prepare(arguments[0], "n", "sum")
    if kind_of(value.type) == "integer":
        wide = cast_sql(value.sql, pa.decimal128(19, 0)) if value.type == _BIGINT else value.sql
        return AggregateCall(f"sum({distinct}{wide})", _BIGINT, "cast({0} as bigint)")
    if kind_of(value.type) == "decimal":
        precision, scale = value.type.precision, value.type.scale
        kind = pa.decimal128(min(MOST_DIGITS, precision + 10), scale)
        return AggregateCall(f"sum({distinct}{_with_room(value.sql, precision, scale)})", kind, cast_sql("{0}", kind))
    return AggregateCall(f"sum({distinct}{convert(value, _DOUBLE).sql})", _DOUBLE)


def _with_room(sql: str, precision: int, scale: int) -> str:
    """Cast a decimal of this many digits to a type in which the sum of ten billion rows fits: up to 76 digits."""
    if precision + 10 <= MOST_DIGITS:
        return cast_sql(sql, pa.decimal128(precision, scale))
    return f"cast({sql} as decimal({precision + 10}, {scale}))"


def _avg(arguments: list[Typed], distinct: str) -> AggregateCall:
    expect("avg", arguments, 1)
    value = prepare(arguments[0], "n", "avg")
    if kind_of(value.type) == "decimal":
        kind = limited_decimal(value.type.precision + 4, value.type.scale + 4)
        wide = _with_room(value.sql, value.type.precision + 1, value.type.scale + 1)
        if value.type.precision > 33:
            raise refuse("avg of a decimal with more than 33 digits", "its digits do not fit", "cast it to double")
        return AggregateCall(f"avg({distinct}{wide})", kind, cast_sql("{0}", kind))
    return AggregateCall(f"avg({distinct}{convert(value, _DOUBLE).sql})", _DOUBLE)


def _same(name: str, spark_name: str | None = None) -> Writer:
    """An aggregate of one argument that has the argument's type."""

    def write(arguments: list[Typed], distinct: str) -> AggregateCall:
        expect(spark_name or name, arguments, 1)
        if kind_of(arguments[0].type) in ("array", "map", "struct"):
            raise refuse(f"{spark_name or name} of nested values", "DataFusion has no equivalent")
        return AggregateCall(f"{name}({distinct}{arguments[0].sql})", arguments[0].type)

    return write


def _doubles(name: str, count: int = 1) -> Writer:
    def write(arguments: list[Typed], distinct: str) -> AggregateCall:
        expect(name, arguments, count)
        values = ", ".join(convert(prepare(each, "n", name), _DOUBLE).sql for each in arguments)
        return AggregateCall(f"{name}({distinct}{values})", _DOUBLE)

    return write


def _booleans(name: str) -> Writer:
    def write(arguments: list[Typed], distinct: str) -> AggregateCall:
        expect(name, arguments, 1)
        return AggregateCall(f"{name}({prepare(arguments[0], 'b', name).sql})", pa.bool_())

    return write


def _count_if(arguments: list[Typed], distinct: str) -> AggregateCall:
    expect("count_if", arguments, 1)
    return AggregateCall("count(*)", _BIGINT, only=prepare(arguments[0], "b", "count_if").sql)


def _collect(name: str, *, unique: bool) -> Writer:
    """An aggregate that collects values in an array, without NULLs. The array is empty if there are no values."""

    def write(arguments: list[Typed], distinct: str) -> AggregateCall:
        expect(name, arguments, 1)
        value = arguments[0]
        kind = pa.list_(value.type)
        empty = f"array_slice(make_array({cast_sql('null', value.type)}), 2, 1)"
        word = "distinct " if unique else distinct
        return AggregateCall(
            f"array_agg({word}{value.sql})", kind, f"coalesce({{0}}, {empty})", f"{value.sql} is not null"
        )

    return write


def _edge(name: str) -> Writer:
    """`first` and `last`. NULLs are left out if the second argument is true."""

    def write(arguments: list[Typed], distinct: str) -> AggregateCall:
        expect(name, arguments, 1, 2)
        skips = len(arguments) == 2 and arguments[1].sql == "true"
        value = arguments[0]
        return AggregateCall(f"{name}({value.sql}){' ignore nulls' if skips else ''}", value.type)

    return write


def _percentile(arguments: list[Typed], distinct: str) -> AggregateCall:
    expect("percentile", arguments, 2)
    return _percentile_at(arguments[0], arguments[1].value)


def _median(arguments: list[Typed], distinct: str) -> AggregateCall:
    expect("median", arguments, 1)
    return _percentile_at(arguments[0], 0.5)


def _percentile_at(value: Typed, fraction: object) -> AggregateCall:
    if fraction is None:
        raise refuse("percentile with a fraction that is not a literal", "DataFusion has no equivalent")
    number = convert(prepare(value, "n", "percentile"), _DOUBLE).sql
    return AggregateCall(f"percentile_cont({number}, {float(str(fraction))})", _DOUBLE)


def _grouping(arguments: list[Typed], distinct: str) -> AggregateCall:
    expect("grouping", arguments, 1)
    return AggregateCall(f"grouping({arguments[0].sql})", pa.int8(), "cast({0} as tinyint)")


AGGREGATES: dict[str, Writer] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "mean": _avg,
    "min": _same("min"),
    "max": _same("max"),
    "count_if": _count_if,
    "stddev": _doubles("stddev_samp"),
    "std": _doubles("stddev_samp"),
    "stddev_samp": _doubles("stddev_samp"),
    "stddev_pop": _doubles("stddev_pop"),
    "variance": _doubles("var_samp"),
    "var_samp": _doubles("var_samp"),
    "var_pop": _doubles("var_pop"),
    "corr": _doubles("corr", 2),
    "covar_pop": _doubles("covar_pop", 2),
    "covar_samp": _doubles("covar_samp", 2),
    "bool_and": _booleans("bool_and"),
    "every": _booleans("bool_and"),
    "bool_or": _booleans("bool_or"),
    "some": _booleans("bool_or"),
    "any": _booleans("bool_or"),
    "bit_and": _same("bit_and"),
    "bit_or": _same("bit_or"),
    "bit_xor": _same("bit_xor"),
    "collect_list": _collect("collect_list", unique=False),
    "array_agg": _collect("array_agg", unique=False),
    "collect_set": _collect("collect_set", unique=True),
    "first": _edge("first_value"),
    "first_value": _edge("first_value"),
    "last": _edge("last_value"),
    "last_value": _edge("last_value"),
    "any_value": _edge("first_value"),
    "percentile": _percentile,
    "median": _median,
    "grouping": _grouping,
}

WITH_DISTINCT = (
    "count",
    "sum",
    "avg",
    "mean",
    "min",
    "max",
    "collect_list",
    "array_agg",
    "collect_set",
    "bool_and",
    "every",
)
"""Aggregates that DISTINCT is allowed in."""


def _rank(name: str, kind: pa.DataType = _INT) -> Writer:
    def write(arguments: list[Typed], distinct: str) -> AggregateCall:
        expect(name, arguments, 0)
        return AggregateCall(f"{name}()", kind, cast_sql("{0}", kind))

    return write


def _ntile(arguments: list[Typed], distinct: str) -> AggregateCall:
    expect("ntile", arguments, 1)
    return AggregateCall(f"ntile({_number(arguments, 0, 'ntile')})", _INT, "cast({0} as int)")


def _neighbour(name: str) -> Writer:
    """`lag` and `lead`."""

    def write(arguments: list[Typed], distinct: str) -> AggregateCall:
        expect(name, arguments, 1, 2, 3)
        offset = _number(arguments, 1, name) if len(arguments) > 1 else 1
        value = arguments[0]
        others = f", {offset}"
        if len(arguments) == 3:
            others += f", {convert(arguments[2], value.type).sql}"
        return AggregateCall(f"{name}({value.sql}{others})", value.type)

    return write


def _nth(arguments: list[Typed], distinct: str) -> AggregateCall:
    expect("nth_value", arguments, 2)
    return AggregateCall(f"nth_value({arguments[0].sql}, {_number(arguments, 1, 'nth_value')})", arguments[0].type)


def _number(arguments: Sequence[Typed], position: int, name: str) -> int:
    value = arguments[position].value
    if not isinstance(value, int):
        raise wrong(f"{name} takes a whole number as a literal")
    return value


WINDOW_FUNCTIONS: dict[str, Writer] = {
    "row_number": _rank("row_number"),
    "rank": _rank("rank"),
    "dense_rank": _rank("dense_rank"),
    "percent_rank": _rank("percent_rank", _DOUBLE),
    "cume_dist": _rank("cume_dist", _DOUBLE),
    "ntile": _ntile,
    "lag": _neighbour("lag"),
    "lead": _neighbour("lead"),
    "nth_value": _nth,
}


def without_nulls(made: AggregateCall) -> AggregateCall:
    """The same with IGNORE NULLS."""
    return made if made.call.endswith("ignore nulls") else replace(made, call=f"{made.call} ignore nulls")
