"""Spark's functions of arrays, maps and structs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa

from sparkfusion.dialect.conversions import coerce_all, convert
from sparkfusion.dialect.function_forms import Special, expect, prepare
from sparkfusion.dialect.nested_values import element_at, item_or_null
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.typed_sql import Typed
from sparkfusion.dialect.value_types import STRING, common_type, kind_of

_INT = pa.int32()


def _array(arguments: list[Typed]) -> Typed:
    if not arguments:
        raise refuse("array() without items", "its type is not known", "cast NULL to an array type instead")
    values = coerce_all(arguments, "array")
    return Typed(f"make_array({', '.join(each.sql for each in values)})", pa.list_(values[0].type))


def _map(arguments: list[Typed]) -> Typed:
    if not arguments or len(arguments) % 2:
        raise wrong("map takes keys and values in turn")
    keys, values = coerce_all(arguments[::2], "map"), coerce_all(arguments[1::2], "map")
    if len({each.sql for each in keys}) < len(keys) or not all(each.constant for each in arguments[::2]):
        raise refuse("map with keys that are not different literals", "Spark fails for equal keys")
    texts = [", ".join(each.sql for each in side) for side in (keys, values)]
    return Typed(f"map([{texts[0]}], [{texts[1]}])", pa.map_(keys[0].type, values[0].type))


def _named_struct(arguments: list[Typed]) -> Typed:
    names, values = arguments[::2], arguments[1::2]
    if not arguments or len(arguments) % 2 or not all(isinstance(each.value, str) for each in names):
        raise wrong("named_struct takes names, which are literals, and values in turn")
    fields = ", ".join(f"{name.sql}, {value.sql}" for name, value in zip(names, values, strict=True))
    kinds = [(str(name.value), value.type) for name, value in zip(names, values, strict=True)]
    return Typed(f"named_struct({fields})", pa.struct(kinds))


def _size(arguments: list[Typed]) -> Typed:
    expect("size", arguments, 1)
    if kind_of(arguments[0].type) not in ("array", "map", "null"):
        raise wrong(f"size takes an array or a map, not {arguments[0].type}")
    if kind_of(arguments[0].type) == "null":
        return Typed("cast(null as int)", _INT)
    return Typed(f"cast(cardinality({arguments[0].sql}) as int)", _INT)


def _with_item(name: str, template: str, gives: pa.DataType | None = None) -> Special:
    """A function of an array and a value of its item type."""

    def write(arguments: list[Typed]) -> Typed:
        expect(name, arguments, 2)
        array = prepare(arguments[0], "a", name)
        if common_type(array.type.value_type, arguments[1].type) != array.type.value_type:
            raise refuse(f"{name} with an item of another type than the array's", "nothing converts the array")
        item = convert(arguments[1], array.type.value_type)
        return Typed(template.format(array.sql, item.sql), gives or array.type)

    return write


def _of_arrays(name: str, template: str, gives: pa.DataType | None = None) -> Special:
    """A function of two arrays of one type."""

    def write(arguments: list[Typed]) -> Typed:
        expect(name, arguments, 2)
        first, second = coerce_all([prepare(each, "a", name) for each in arguments], name)
        made = template.format(first.sql, second.sql)
        known = f"{first.sql} is not null and {second.sql} is not null"
        return Typed(f"case when {known} then {made} end", gives or first.type)

    return write


def _of_array(name: str, template: str, *, item: bool = False) -> Special:
    def write(arguments: list[Typed]) -> Typed:
        expect(name, arguments, 1)
        array = prepare(arguments[0], "a", name)
        return Typed(template.format(array.sql), array.type.value_type if item else array.type)

    return write


def _sort_array(arguments: list[Typed]) -> Typed:
    expect("sort_array", arguments, 1, 2)
    array = prepare(arguments[0], "a", "sort_array")
    up = len(arguments) == 1 or arguments[1].sql == "true"
    if len(arguments) == 2 and arguments[1].sql not in ("true", "false"):
        raise refuse("sort_array with a direction that is not a literal", "DataFusion has no equivalent")
    order = "'ASC', 'NULLS FIRST'" if up else "'DESC', 'NULLS LAST'"
    return Typed(f"array_sort({array.sql}, {order})", array.type)


def _array_join(arguments: list[Typed]) -> Typed:
    expect("array_join", arguments, 2, 3)
    array = prepare(arguments[0], "a", "array_join")
    if kind_of(array.type.value_type) != "string":
        raise refuse(f"array_join of an array of {array.type.value_type}", "it takes strings only")
    others = ", ".join(prepare(each, "s", "array_join").sql for each in arguments[1:])
    return Typed(f"case when {array.sql} is not null then array_to_string({array.sql}, {others}) end", STRING)


def _flatten(arguments: list[Typed]) -> Typed:
    expect("flatten", arguments, 1)
    array = prepare(arguments[0], "a", "flatten")
    inner = array.type.value_type
    if kind_of(inner) != "array":
        raise wrong(f"flatten takes an array of arrays, not {array.type}")
    raise refuse("flatten", "DataFusion's leaves NULL arrays out, Spark's gives NULL")


def _slice(arguments: list[Typed]) -> Typed:
    expect("slice", arguments, 3)
    array = prepare(arguments[0], "a", "slice")
    begin, length = arguments[1].value, arguments[2].value
    if not isinstance(begin, int) or not isinstance(length, int) or begin < 1 or length < 0:
        raise refuse("slice", "its position has to be a positive literal, and its length a literal")
    if length == 0:
        return Typed(f"array_slice({array.sql}, 2, 1)", array.type)
    return Typed(f"array_slice({array.sql}, {begin}, {begin + length - 1})", array.type)


def _map_part(name: str, *, keys: bool) -> Special:
    def write(arguments: list[Typed]) -> Typed:
        expect(name, arguments, 1)
        value = prepare(arguments[0], "m", name)
        kind = value.type.key_type if keys else value.type.item_type
        return Typed(f"case when {value.sql} is not null then {name}({value.sql}) end", pa.list_(kind))

    return write


def _map_contains_key(arguments: list[Typed]) -> Typed:
    expect("map_contains_key", arguments, 2)
    value = prepare(arguments[0], "m", "map_contains_key")
    key = convert(arguments[1], value.type.key_type)
    return Typed(
        f"case when {value.sql} is not null then coalesce(array_has(map_keys({value.sql}), {key.sql}), false) end",
        pa.bool_(),
    )


def _item(name: str, write: Callable[[Typed, Typed], Typed]) -> Special:
    def apply(arguments: list[Typed]) -> Typed:
        expect(name, arguments, 2)
        return write(*arguments)

    return apply


_CONTAINS = (
    "case when {0} is null or {1} is null then null when array_has({0}, {1}) then true "
    "when cardinality({0}) > cardinality(array_compact({0})) then null else false end"
)
_POSITION = (
    "case when {0} is not null and {1} is not null then cast(coalesce(array_position({0}, {1}), 0) as bigint) end"
)

NESTED_SPECIALS: dict[str, Special] = {
    "array": _array,
    "map": _map,
    "named_struct": _named_struct,
    "size": _size,
    "cardinality": _size,
    "array_size": _size,
    "element_at": _item("element_at", element_at),
    "try_element_at": _item("try_element_at", partial(element_at, tries=True)),
    "get": _item("get", item_or_null),
    "array_contains": _with_item("array_contains", _CONTAINS, pa.bool_()),
    "array_position": _with_item("array_position", _POSITION, pa.int64()),
    "array_remove": _with_item("array_remove", "case when {1} is not null then array_remove_all({0}, {1}) end"),
    "array_append": _with_item("array_append", "case when {0} is not null then array_append({0}, {1}) end"),
    "array_prepend": _with_item("array_prepend", "case when {0} is not null then array_prepend({1}, {0}) end"),
    "array_union": _of_arrays("array_union", "array_union({0}, {1})"),
    "array_intersect": _of_arrays("array_intersect", "array_intersect({0}, {1})"),
    "array_except": _of_arrays("array_except", "array_except({0}, {1})"),
    "array_distinct": _of_array("array_distinct", "array_distinct({0})"),
    "array_max": _of_array("array_max", "array_max({0})", item=True),
    "array_min": _of_array("array_min", "array_min({0})", item=True),
    "array_sort": _of_array("array_sort", "array_sort({0}, 'ASC', 'NULLS LAST')"),
    "array_compact": _of_array("array_compact", "array_compact({0})"),
    "sort_array": _sort_array,
    "array_join": _array_join,
    "flatten": _flatten,
    "slice": _slice,
    "map_keys": _map_part("map_keys", keys=True),
    "map_values": _map_part("map_values", keys=False),
    "map_contains_key": _map_contains_key,
}
