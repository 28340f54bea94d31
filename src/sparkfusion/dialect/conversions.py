"""Casts with Spark's meaning under ANSI: a value that does not fit is an error, and NULL for `try_cast`."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.typed_sql import Typed, failing_sql
from sparkfusion.dialect.value_types import STRING, TIMESTAMP, cast_sql, common_type, is_number, kind_of

_PLAIN = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TEXT": STRING,
    "BINARY": pa.binary(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
}
_TIME_TEXT = r"regexp_replace(to_char({0}, '%Y-%m-%d %H:%M:%S%.f'), '(\.[0-9]*[1-9])0+$', '\1')"
_NUMBERS = ("integer", "decimal", "float")


def arrow_type_of(node: exp.DataType) -> pa.DataType:
    """The type that a cast names."""
    name = str(getattr(node.this, "value", node.this)).upper()
    if name == "DECIMAL":
        digits = [int(each.name) for each in node.expressions] or [10, 0]
        return pa.decimal128(digits[0], digits[1] if len(digits) > 1 else 0)
    if name in _PLAIN and not node.expressions:
        return _PLAIN[name]
    if name == "ARRAY" and len(node.expressions) == 1:
        return pa.list_(arrow_type_of(node.expressions[0]))
    raise refuse(f"the type {node.sql(dialect='spark')}", "DataFusion has no equivalent")


def convert(value: Typed, to: pa.DataType, *, tries: bool = False) -> Typed:
    """Convert a value to another type. Raises where the results of DataFusion and Spark differ."""
    source, target = kind_of(value.type), kind_of(to)
    if value.type == to or (source == target and source in ("string", "binary")):
        return value
    if source == "null":
        return Typed(cast_sql(value.sql, to), to)
    _check(value.type, to)
    sql = value.sql
    if source == "timestamp" and value.type != TIMESTAMP:
        sql = cast_sql(sql, TIMESTAMP)  # in UTC
        if to == TIMESTAMP:
            return Typed(sql, to)
    if source == "timestamp" and target == "string":
        return Typed(_TIME_TEXT.format(sql), STRING)
    if source == "string" and target == "boolean":
        return Typed(_boolean_of(_trim(value), tries=tries), to)
    if source == "string" and target in (*_NUMBERS, "date", "timestamp"):
        sql = _trim(value)
    if source == "float" and target == "decimal":
        sql = f"cast({sql} as varchar)"  # Spark rounds the printed digits
    return Typed(cast_sql(sql, to, tries=tries), to)


def coerce_all(values: list[Typed], what: str) -> list[Typed]:
    """Convert values to their common type."""
    found: pa.DataType = pa.null()
    for each in values:
        wider = common_type(found, each.type)
        if wider is None:
            raise wrong(f"{what} has values of types {found} and {each.type}", "cast one of them")
        found = wider
    return [convert(each, found) for each in values]


def _trim(value: Typed) -> str:
    """The text without surrounding whitespace, which Spark ignores in a cast."""
    if isinstance(value.value, str):
        return "'" + value.value.strip().replace("'", "''") + "'"
    return f"btrim({value.sql}, ' ')"


def _boolean_of(sql: str, *, tries: bool) -> str:
    text = f"lower({sql})"
    otherwise = "null" if tries else failing_sql(f"concat('not a boolean: ', {sql})", pa.int32(), cast_sql)
    return (
        f"(case when {text} in ('t', 'true', 'y', 'yes', '1') then 1 "
        f"when {text} in ('f', 'false', 'n', 'no', '0') then 0 when {sql} is null then null else {otherwise} end = 1)"
    )


def _check(source: pa.DataType, to: pa.DataType) -> None:
    kinds = kind_of(source), kind_of(to)
    match kinds:
        case ("float", "string"):
            why = "Spark writes large and small numbers with an exponent, DataFusion with all digits"
            raise refuse("a cast of a floating-point number to string", why, "cast it to a decimal first")
        case ("integer" | "decimal" | "float", "timestamp") | ("timestamp", "integer" | "decimal" | "float"):
            why = "Spark counts seconds, DataFusion the unit of the type"
            raise refuse(f"a cast of {source} to {to}", why, "use timestamp_seconds or unix_timestamp")
        case ("array", "array"):
            _check_items(source.value_type, to.value_type)
        case ("string" | "integer" | "decimal" | "float" | "boolean", _) if is_number(to) or kinds[1] == "boolean":
            return
        case ("integer" | "decimal" | "boolean" | "date" | "binary", "string"):
            return
        case ("string", "date" | "timestamp" | "binary") | ("date", "timestamp") | ("timestamp", "date"):
            return
        case ("timestamp", "timestamp" | "string"):
            return
        case _:
            raise refuse(f"a cast of {source} to {to}", "DataFusion has no equivalent with the same meaning")


def _check_items(source: pa.DataType, to: pa.DataType) -> None:
    if kind_of(source) not in ("integer", "null") or kind_of(to) not in _NUMBERS:
        raise refuse(f"a cast of an array of {source} to an array of {to}", "only arrays of integers are converted")
