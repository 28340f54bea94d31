"""Spark's types: the common type of two values, and DataFusion's SQL for a type."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from sparkfusion.dialect.refusals import refuse

TypeKind = Literal[
    "null", "boolean", "integer", "decimal", "float", "string", "binary", "date", "timestamp", "local", "interval",
    "array", "map", "struct",
]  # fmt: skip

TIMESTAMP = pa.timestamp("us", "UTC")
STRING = pa.string()
MOST_DIGITS = 38
_SIZES = {pa.int8(): 1, pa.int16(): 2, pa.int32(): 4, pa.int64(): 8}
_BY_SIZE = {size: kind for kind, size in _SIZES.items()}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_NAMES = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.binary(): "bytea",
}
_KINDS: dict[TypeKind, tuple[str, ...]] = {
    "null": ("null",),
    "boolean": ("bool",),
    "integer": ("int8", "int16", "int32", "int64"),
    "float": ("float", "double", "halffloat"),
    "string": ("string", "large_string", "string_view"),
    "binary": ("binary", "large_binary", "binary_view"),
    "date": ("date32[day]",),
}


def kind_of(kind: pa.DataType) -> TypeKind:
    """The kind of a type in Spark. Types that Spark does not have are refused."""
    for name, spellings in _KINDS.items():
        if str(kind) in spellings:
            return name
    if pa.types.is_decimal128(kind):
        return "decimal"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is not None else "local"
    if pa.types.is_duration(kind) or pa.types.is_interval(kind):
        return "interval"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return "array"
    if pa.types.is_map(kind):
        return "map"
    if pa.types.is_struct(kind):
        return "struct"
    raise refuse(
        f"a value of type {kind}", "Spark has no such type", "create a view in DataFusion's dialect that casts it"
    )


def is_number(kind: pa.DataType) -> bool:
    return kind_of(kind) in ("integer", "decimal", "float")


def as_decimal(kind: pa.DataType) -> pa.DataType:
    """The decimal that holds every value of an integer type."""
    return kind if pa.types.is_decimal128(kind) else pa.decimal128(_DIGITS[kind], 0)


def limited_decimal(precision: int, scale: int) -> pa.DataType:
    """A decimal type of at most 38 digits. As in Spark, digits after the point are dropped first, down to six."""
    if precision <= MOST_DIGITS:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, 6)))


def wider_integer(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    return _BY_SIZE[max(_SIZES[left], _SIZES[right])]


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type that both have in common under Spark's ANSI rules; None if there is none."""
    first, second = kind_of(left), kind_of(right)
    if left == right or second == "null" or (first == second and first in ("string", "binary")):
        return left
    if first == "null":
        return right
    if "string" in (first, second):
        return _with_string(right if first == "string" else left)
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    if {first, second} == {"date", "timestamp"}:
        return TIMESTAMP
    if first == second == "timestamp":
        return TIMESTAMP
    if first == second == "array":
        inner = common_type(left.value_type, right.value_type)
        return None if inner is None else pa.list_(inner)
    return None


def _with_string(other: pa.DataType) -> pa.DataType | None:
    match kind_of(other):
        case "integer":
            return pa.int64()
        case "decimal" | "float":
            return pa.float64()
        case "date" | "timestamp" | "boolean":
            return other
        case _:
            return None


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    kinds = {kind_of(left), kind_of(right)}
    if kinds == {"integer"}:
        return wider_integer(left, right)
    if "float" in kinds:
        return pa.float32() if left == right == pa.float32() else pa.float64()
    first, second = as_decimal(left), as_decimal(right)
    scale = max(first.scale, second.scale)
    whole = max(first.precision - first.scale, second.precision - second.scale)
    return limited_decimal(whole + scale, scale)


def cast_sql(sql: str, to: pa.DataType, *, tries: bool = False) -> str:
    """DataFusion's SQL for a cast to a type."""
    if pa.types.is_decimal128(to):
        name = f"decimal({to.precision}, {to.scale})"
    elif kind_of(to) == "string":
        name = "varchar"
    elif to in _NAMES:
        name = _NAMES[to]
    else:
        return f"arrow_{'try_' if tries else ''}cast({sql}, '{arrow_name(to)}')"
    return f"{'try_' if tries else ''}cast({sql} as {name})"


def arrow_name(kind: pa.DataType) -> str:
    """The name of a type for `arrow_cast`."""
    if pa.types.is_timestamp(kind):
        zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
        return f"Timestamp({kind.unit.replace('us', 'µs')}, {zone})"
    if pa.types.is_list(kind):
        return f"List({arrow_name(kind.value_type)})"
    if pa.types.is_decimal128(kind):
        return f"Decimal128({kind.precision}, {kind.scale})"
    plain = {pa.bool_(): "Boolean", pa.float32(): "Float32", pa.float64(): "Float64", pa.date32(): "Date32"}
    plain |= {pa.string(): "Utf8", pa.binary(): "Binary"}
    if kind in plain:
        return plain[kind]
    if kind in _SIZES:
        return f"Int{_SIZES[kind] * 8}"
    raise refuse(f"a conversion to {kind}", "nested types are not converted")
