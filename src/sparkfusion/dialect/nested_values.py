"""Items of arrays and maps, and fields of structs."""

from __future__ import annotations

import pyarrow as pa

from sparkfusion.dialect.conversions import convert
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.typed_sql import Typed, failing_sql
from sparkfusion.dialect.value_types import STRING, cast_sql, kind_of


def _out_of_bounds(index: str) -> str:
    return failing_sql(f"concat('the array has no item ', cast({index} as varchar))", pa.int64(), cast_sql)


def access_field(value: Typed, name: str) -> Typed:
    """A field of a struct; NULL if the struct is NULL. DataFusion itself may return a value for a field of a NULL
    struct."""
    if kind_of(value.type) == "map":
        return access_item(value, Typed(f"'{name}'", STRING, name, constant=True))
    if kind_of(value.type) != "struct":
        raise wrong(f"{value.type} has no field {name!r}")
    for field in value.type:
        if field.name.lower() == name.lower():
            literal = field.name.replace("'", "''")
            return Typed(f"case when {value.sql} is not null then get_field({value.sql}, '{literal}') end", field.type)
    known = ", ".join(field.name for field in value.type)
    raise wrong(f"the struct has no field {name!r}", f"known fields: {known}")


def access_item(value: Typed, index: Typed) -> Typed:
    """`a[i]`. In an array, the item at an index from 0; an error outside of the array. In a map, the value of a key;
    NULL if the key is missing."""
    if kind_of(value.type) == "map":
        return _value_of(value, index)
    if kind_of(value.type) == "struct" and isinstance(index.value, str):
        return access_field(value, index.value)
    if kind_of(value.type) != "array" or kind_of(index.type) not in ("integer", "null"):
        raise wrong(f"{value.type} has no items with an index of type {index.type}")
    position = f"cast({index.sql} as bigint)"
    inside = f"{position} >= 0 and {position} < cast(array_length({value.sql}) as bigint)"
    return _item_within_bounds(value, index, f"{position} + 1", inside, position)


def element_at(value: Typed, index: Typed, *, tries: bool = False) -> Typed:
    """`element_at`: positions count from 1, or from the end if negative."""
    if kind_of(value.type) == "map":
        return _value_of(value, index)
    if kind_of(value.type) != "array":
        raise wrong(f"element_at takes an array or a map, not {value.type}")
    position = f"cast({index.sql} as bigint)"
    if tries:
        zero = f"case when {position} = 0 then {_out_of_bounds('0')} else {position} end"
        return Typed(f"array_element({value.sql}, {zero})", value.type.value_type)
    inside = f"{position} <> 0 and abs({position}) <= cast(array_length({value.sql}) as bigint)"
    return _item_within_bounds(value, index, position, inside, position)


def item_or_null(value: Typed, index: Typed) -> Typed:
    """`get`: positions count from 0; NULL outside of the array."""
    if kind_of(value.type) != "array":
        raise wrong(f"get takes an array, not {value.type}")
    position = f"cast({index.sql} as bigint)"
    item = f"array_element({value.sql}, {position} + 1)"
    return Typed(f"case when {position} >= 0 then {item} end", value.type.value_type)


def _item_within_bounds(value: Typed, index: Typed, position: str, inside: str, shown: str) -> Typed:
    chosen = f"case when {inside} then {position} else {_out_of_bounds(shown)} end"
    known = f"{value.sql} is not null and {index.sql} is not null"
    return Typed(f"case when {known} then array_element({value.sql}, {chosen}) end", value.type.value_type)


def _value_of(value: Typed, key: Typed) -> Typed:
    wanted = convert(key, value.type.key_type)
    if kind_of(value.type.key_type) not in ("string", "integer", "date", "boolean"):
        raise refuse(f"a map with keys of type {value.type.key_type}", "equal keys may differ in their bits")
    return Typed(f"array_element(map_extract({value.sql}, {wanted.sql}), 1)", value.type.item_type)


def as_list(value: Typed, what: str) -> tuple[Typed, bool]:
    """The array that `explode` makes rows of, which may be the entries of a map; and whether it was a map."""
    kind = kind_of(value.type)
    if kind == "array":
        return value, False
    if kind == "map":
        entry = pa.struct([("key", value.type.key_type), ("value", value.type.item_type)])
        return Typed(f"map_entries({value.sql})", pa.list_(entry)), True
    raise wrong(f"{what} takes an array or a map, not {value.type}")
