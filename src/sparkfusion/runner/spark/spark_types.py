"""Schemas between Spark and Arrow, both ways. A type without an equivalent is a `UserError` that names the column.

| Spark                   | Arrow                       | also taken from Arrow                         |
|-------------------------|-----------------------------|-----------------------------------------------|
| boolean, string, binary | bool, utf8, binary          | views, large ones, fixed_size_binary          |
| byte, short, int, long  | int8, int16, int32, int64   | uint8 as short, uint16 as int, uint32 as long |
| float, double           | float32, float64            | float16 as float                              |
| decimal(p, s)           | decimal128(p, s)            | the other decimals up to 38 digits, uint64    |
| date                    | date32                      | date64                                        |
| timestamp               | timestamp(us, session zone) | any unit and zone: the zone is not kept       |
| timestamp_ntz           | timestamp(us)               | any unit                                      |
| interval day to second  | duration(us)                | any unit                                      |
| time                    | time64(ns)                  | any unit                                      |
| array, map, struct      | list, map, struct           | large, fixed-size and view lists              |
| void                    | null                        |                                               |
| interval (calendar)     | interval(month_day_nano)    | nothing: `mapInArrow` refuses it              |
| a user-defined type     | what it is stored as        | extension types, dictionaries, run ends       |

Refused: interval year to month (pyarrow has no arrays of it), variant, geometry and geography (they would be structs of
bytes), strings with a collation (DataFusion compares bytes).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as spark

from sparkfusion.errors import UserError

MAX_PRECISION = 38
_DEFAULT_COLLATION = "UTF8_BINARY"

_PLAIN: dict[type[spark.DataType], pa.DataType] = {
    spark.NullType: pa.null(),
    spark.BooleanType: pa.bool_(),
    spark.ByteType: pa.int8(),
    spark.ShortType: pa.int16(),
    spark.IntegerType: pa.int32(),
    spark.LongType: pa.int64(),
    spark.FloatType: pa.float32(),
    spark.DoubleType: pa.float64(),
    spark.StringType: pa.string(),
    spark.BinaryType: pa.binary(),
    spark.DateType: pa.date32(),
    spark.TimeType: pa.time64("ns"),
    spark.TimestampNTZType: pa.timestamp("us"),
    spark.DayTimeIntervalType: pa.duration("us"),
}
_SPARK = {arrow: kind for kind, arrow in _PLAIN.items()} | {pa.timestamp("us", "UTC"): spark.TimestampType}
_TO_ARROW_ONLY: dict[type[spark.DataType], pa.DataType] = {
    spark.CharType: pa.string(),
    spark.VarcharType: pa.string(),
    spark.CalendarIntervalType: pa.month_day_nano_interval(),
}
_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
_SPARK_HINTS = {
    "variant": "to_json(…)",
    "geometry": "st_asbinary(…)",
    "geography": "st_asbinary(…)",
    "interval year": "cast(cast(… as interval month) as int)",
    "interval month": "cast(… as int)",
    "string collate": f"collate(…, '{_DEFAULT_COLLATION}')",
}
_WIDER: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    **dict.fromkeys((pa.string_view(), pa.large_string()), pa.string()),
    **dict.fromkeys((pa.binary_view(), pa.large_binary()), pa.binary()),
    **dict.fromkeys((pa.time32("s"), pa.time32("ms"), pa.time64("us")), pa.time64("ns")),
    **dict.fromkeys((pa.duration(unit) for unit in ("s", "ms", "ns")), pa.duration("us")),
}
_OFFSET_ZONE = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?(?::?00)?")

_LISTLIKE = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)

Path = tuple[str, ...]


def arrow_schema(schema: spark.StructType, time_zone: str, *, large_types: bool = False) -> pa.Schema:
    """The schema of the record batches that Spark exports for a DataFrame, to decode them with.

    `time_zone` is `spark.sql.session.timeZone`, `large_types` is `spark.sql.execution.arrow.useLargeVarTypes`. The
    zone does not change the bytes; offsets are written the way DataFusion reads them (`GMT+1` as `+01:00`). Metadata of
    columns is left out.

    >>> arrow_schema(spark.StructType().add("at", spark.TimestampType()), "Europe/Prague")
    at: timestamp[us, tz=Europe/Prague]
    """
    return pa.schema(_Export(_zone(time_zone), large_types).fields(schema, ()))


@dataclass(frozen=True)
class _Export:
    zone: str
    large: bool

    def fields(self, struct: spark.StructType, path: Path) -> list[pa.Field]:
        _refuse_duplicates(struct.names, path, "rename one of them with withColumnRenamed, toDF or an alias")
        return [self._field(field.name, field.dataType, field.nullable, path) for field in struct]

    def _field(self, name: str, kind: spark.DataType, nullable: bool, path: Path) -> pa.Field:
        # Of an empty array() Spark says that it holds voids that are never null; pyarrow has no such field.
        return pa.field(name, self._type(kind, (*path, name)), nullable or isinstance(kind, spark.NullType))

    def _type(self, kind: spark.DataType, path: Path) -> pa.DataType:
        match kind:
            case spark.StringType() if kind.collation != _DEFAULT_COLLATION:
                raise _no_arrow(kind, path)
            case spark.DecimalType():
                return pa.decimal128(kind.precision, kind.scale)
            case spark.TimestampType():
                return pa.timestamp("us", self.zone)
            case spark.ArrayType():
                return pa.list_(self._field("element", kind.elementType, kind.containsNull, path))
            case spark.MapType() if not isinstance(kind.keyType, spark.NullType):
                key = self._field("key", kind.keyType, False, path)
                return pa.map_(key, self._field("value", kind.valueType, kind.valueContainsNull, path))
            case spark.StructType() if len(kind):  # DataFusion 55 panics when it groups by a struct without fields
                return pa.struct(self.fields(kind, path))
            case spark.UserDefinedType():
                return self._type(kind.sqlType(), path)
        plain = _PLAIN.get(type(kind)) or _TO_ARROW_ONLY.get(type(kind))
        if plain is None:
            raise _no_arrow(kind, path)
        return _LARGE.get(plain, plain) if self.large else plain


def spark_schema(schema: pa.Schema) -> spark.StructType:
    """The Spark schema of an answer with this Arrow schema. Nullability is kept, metadata is not.

    >>> spark_schema(pa.schema([pa.field("n", pa.uint64()), pa.field("s", pa.string_view())])).simpleString()
    'struct<n:decimal(20,0),s:string>'
    """
    return _spark_struct(spark_arrow_schema(schema))


def spark_arrow_schema(schema: pa.Schema) -> pa.Schema:
    """What `mapInArrow` has to yield for `spark_schema(schema)`; `casts.for_spark` brings batches there.

    Worked out once for each answer: its errors are of the types alone, before any row is computed.
    """
    return pa.schema(_fields_for_spark(schema, ()))


def _fields_for_spark(fields: Iterable[pa.Field], path: Path) -> list[pa.Field]:
    fields = list(fields)
    _refuse_duplicates([field.name for field in fields], path, "give one of them another name: select a.id as a_id, …")
    return [_field_for_spark(field.name, field, path) for field in fields]


def _field_for_spark(name: str, field: pa.Field, path: Path) -> pa.Field:
    return pa.field(name, _type_for_spark(field.type, (*path, name)), field.nullable)


def _type_for_spark(kind: pa.DataType, path: Path) -> pa.DataType:
    kind = _WIDER.get(kind, kind)
    if isinstance(kind, pa.BaseExtensionType):
        return _type_for_spark(kind.storage_type, path)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _type_for_spark(kind.value_type, path)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_decimal(kind):
        return _decimal_for_spark(kind, path)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if is_listlike(kind):
        element = _field_for_spark("element", kind.value_field, path)
        return pa.list_(element.with_name(kind.value_field.name))  # Spark takes any name, and so a list goes as it is
    if pa.types.is_map(kind):  # Spark finds these two by name, and DataFusion's are called "keys" and "values"
        return pa.map_(_field_for_spark("key", kind.key_field, path), _field_for_spark("value", kind.item_field, path))
    if pa.types.is_struct(kind):
        return pa.struct(_fields_for_spark(kind, path))
    if kind not in _SPARK:
        raise _no_spark(kind, path)
    return kind


def _decimal_for_spark(kind: pa.DataType, path: Path) -> pa.DataType:
    """Spark's scales go from 0 to the precision: 1e3 as decimal(1, -3) is 1000 as decimal(4, 0)."""
    scale = max(kind.scale, 0)
    precision = max(kind.precision + scale - kind.scale, scale)
    if precision > MAX_PRECISION:
        raise _no_spark(kind, path)
    return pa.decimal128(precision, scale)


def is_listlike(kind: pa.DataType) -> bool:
    return any(is_it(kind) for is_it in _LISTLIKE)


def _spark_struct(fields: Iterable[pa.Field]) -> spark.StructType:
    made = [spark.StructField(field.name, _spark_type(field.type), field.nullable) for field in fields]
    return spark.StructType(made)


def _spark_type(kind: pa.DataType) -> spark.DataType:
    """Of a type that `spark_arrow_schema` gives."""
    if pa.types.is_decimal(kind):
        return spark.DecimalType(kind.precision, kind.scale)
    if pa.types.is_list(kind):
        return spark.ArrayType(_spark_type(kind.value_type), kind.value_field.nullable)
    if pa.types.is_map(kind):
        return spark.MapType(_spark_type(kind.key_type), _spark_type(kind.item_type), kind.item_field.nullable)
    if pa.types.is_struct(kind):
        return _spark_struct(kind)
    return _SPARK[kind]()


def _zone(time_zone: str) -> str:
    """Spark's name of a zone in DataFusion's words. Java's short names (PST) stay; DataFusion says that it has no such.

    >>> [_zone(zone) for zone in ("Z", "UTC+8", "-03:30:00", "Etc/GMT+5")]
    ['UTC', '+08:00', '-03:30', 'Etc/GMT+5']
    """
    if time_zone in {"Z", "UT"}:
        return "UTC"
    if (offset := _OFFSET_ZONE.fullmatch(time_zone)) is None:
        return time_zone
    sign, hours, minutes = offset.groups(default="00")
    return f"{sign}{hours.zfill(2)}:{minutes}"


def _refuse_duplicates(names: list[str], path: Path, hint: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        place = f"the fields of {'.'.join(path)!r}" if path else "the columns"
        raise UserError(f"two of {place} are called {twice!r}", hint=hint)


def _no_arrow(kind: spark.DataType, path: Path) -> UserError:
    name = kind.simpleString()
    cast = next((hint for start, hint in _SPARK_HINTS.items() if name.startswith(start)), "cast(… as string)")
    message = f"column {'.'.join(path)!r} of the DataFrame has type {name}, which DataFusion does not support"
    return UserError(message, hint=f"drop the column, or convert it in Spark first: {cast}")


def _no_spark(kind: pa.DataType, path: Path) -> UserError:
    if pa.types.is_decimal(kind):
        hint = f"Spark has {MAX_PRECISION} digits: cast(… as decimal({MAX_PRECISION}, {max(kind.scale, 0)}))"
    elif "interval" in str(kind):
        hint = "cast(… as varchar), or extract(epoch from …) for its seconds"
    else:
        hint = "leave it out, or convert it in the query"
    return UserError(
        f"column {'.'.join(path)!r} of the result has type {kind}, which Spark does not support", hint=hint
    )
