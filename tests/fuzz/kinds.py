"""Families of types: what an expression may do with a value, whatever its exact Arrow type is."""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa


class Family(StrEnum):
    """Values that may be compared, joined and united with each other; DataFusion finds the common type."""

    INT = "int"
    FLOAT = "float"
    DECIMAL = "decimal"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"  # without a zone
    INSTANT = "instant"  # with a zone
    BOOL = "bool"
    BINARY = "binary"
    INT_LIST = "int_list"
    TEXT_LIST = "text_list"
    STRUCT = "struct"


STRUCT_TYPE = pa.struct([pa.field("a", pa.int64()), pa.field("b", pa.string())])

ARROW_TYPES: dict[Family, tuple[pa.DataType, ...]] = {
    Family.INT: (
        pa.int64(),
        pa.int32(),
        pa.int16(),
        pa.int8(),
        pa.uint64(),
        pa.uint32(),
        pa.uint16(),
        pa.uint8(),
    ),
    Family.FLOAT: (pa.float64(), pa.float32()),
    Family.DECIMAL: (pa.decimal128(10, 2), pa.decimal128(15, 4)),
    Family.TEXT: (pa.string(), pa.string_view(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
    Family.DATE: (pa.date32(), pa.date64()),
    Family.TIMESTAMP: (pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("ms"), pa.timestamp("s")),
    Family.INSTANT: (pa.timestamp("us", tz="UTC"), pa.timestamp("us", tz="Europe/Paris")),
    Family.BOOL: (pa.bool_(),),
    Family.BINARY: (pa.binary(), pa.large_binary()),
    Family.INT_LIST: (pa.list_(pa.int64()),),
    Family.TEXT_LIST: (pa.list_(pa.string()),),
    Family.STRUCT: (STRUCT_TYPE,),
}

NUMBERS = frozenset({Family.INT, Family.FLOAT, Family.DECIMAL})
NESTED = frozenset({Family.INT_LIST, Family.TEXT_LIST, Family.STRUCT})
SCALARS = tuple(family for family in Family if family not in NESTED)
COMPARED = tuple(family for family in SCALARS if family is not Family.BOOL)


def type_source(type_: pa.DataType) -> str:
    """The Python expression that makes this Arrow type, for reproducers.

    >>> type_source(pa.dictionary(pa.int32(), pa.string()))
    'pa.dictionary(pa.int32(), pa.string())'
    >>> type_source(pa.timestamp("us", tz="UTC"))
    "pa.timestamp('us', tz='UTC')"
    """
    types = pa.types
    if types.is_decimal(type_):
        return f"pa.decimal{type_.bit_width}({type_.precision}, {type_.scale})"
    if types.is_timestamp(type_):
        zone = f", tz={type_.tz!r}" if type_.tz else ""
        return f"pa.timestamp({type_.unit!r}{zone})"
    if types.is_dictionary(type_):
        return f"pa.dictionary({type_source(type_.index_type)}, {type_source(type_.value_type)})"
    if types.is_list(type_):
        return f"pa.list_({type_source(type_.value_type)})"
    if types.is_struct(type_):
        return "pa.struct([" + ", ".join(f"({field.name!r}, {type_source(field.type)})" for field in type_) + "])"
    if types.is_fixed_size_binary(type_):
        return f"pa.binary({type_.byte_width})"
    spelled = {
        "double": "float64",
        "float": "float32",
        "bool": "bool_",
        "date32[day]": "date32",
        "date64[ms]": "date64",
    }
    return f"pa.{spelled.get(str(type_), str(type_))}()"
