"""JSON objects as record batches of a schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from sparkfusion.errors import UserError


def parse(body: bytes, shown: str) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise UserError(f"{shown} did not return JSON: {error}") from None


def at_path(value: Any, path: str) -> Any:
    """The value at a path of keys; None if a key is missing.

    >>> at_path({"paging": {"next": "x"}}, "paging.next"), at_path({"paging": None}, "paging.next")
    ('x', None)
    """
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def rows_of(document: Any, path: str | None, shown: str) -> list[dict[str, Any]]:
    """The JSON objects at a path of a page; raises if there is no list of objects."""
    found = document if path is None else at_path(document, path)
    if found is None and path is not None and _is_null_at(document, path):
        return []
    if not isinstance(found, list):
        has = f"has the keys {', '.join(map(repr, document))}" if isinstance(document, dict) else "is not an object"
        where = "is not a list" if path is None else f"has no list at {path!r}"
        raise UserError(f"the page of {shown} {where}: it {has}", hint="pass rows='key.of.the.list'")
    other = next((each for each in found if not isinstance(each, dict)), None)
    if other is not None:
        raise UserError(f"the rows of {shown} must be JSON objects, but one is a {type(other).__name__}")
    return found


def _is_null_at(value: Any, path: str) -> bool:
    """Whether a key of the path is there and its value is null: an API may return that instead of an empty list. A key
    that is missing may be misspelt.

    >>> _is_null_at({"data": None}, "data.items"), _is_null_at({"data": {"items": []}}, "data.itms")
    (True, False)
    """
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
        if value is None:
            return True
    return False


def batch_of(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """The rows under a schema: missing keys are NULL, other keys are left out."""
    columns = [_column([row.get(field.name) for row in rows], field.type, field.name) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: list[Any], type: pa.DataType, name: str) -> pa.Array:
    if pa.types.is_struct(type):
        _check(values, dict, name, type)
        children = [
            _column([(value or {}).get(field.name) for value in values], field.type, f"{name}.{field.name}")
            for field in type
        ]
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(type), mask=mask)
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        _check(values, list, name, type)
        flat = _column([each for value in values for each in value or ()], type.value_type, f"{name}[]")
        ends = [0]
        for value in values:
            ends.append(ends[-1] + len(value or ()))
        lists = pa.LargeListArray if pa.types.is_large_list(type) else pa.ListArray
        mask = pa.array([value is None for value in values], pa.bool_())
        offsets = pa.array(ends, pa.int64() if pa.types.is_large_list(type) else pa.int32())
        return lists.from_arrays(offsets, flat, type=type, mask=mask)
    return _leaf(values, type, name)


def _leaf(values: list[Any], type: pa.DataType, name: str) -> pa.Array:
    try:
        if pa.types.is_temporal(type) and any(isinstance(value, str) for value in values):
            return pa.array(values, pa.string()).cast(type)
        if pa.types.is_decimal(type):
            return pa.array([None if value is None else _decimal(value) for value in values], type)
        if pa.types.is_integer(type):
            _check_each(values, lambda value: not isinstance(value, float) or value.is_integer(), name, type)
        return pa.array(values, type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, InvalidOperation) as error:
        raise UserError(f"column {name!r} is {type}, but {str(error)[:200]}") from None


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"a value is {value!r}")
    return Decimal(str(value))


def _check(values: list[Any], wanted: type, name: str, type: pa.DataType) -> None:
    _check_each(values, lambda value: value is None or isinstance(value, wanted), name, type)


def _check_each(values: list[Any], holds: Callable[[Any], bool], name: str, type: pa.DataType) -> None:
    for value in values:
        if not holds(value):
            raise UserError(f"column {name!r} is {type}, but a value is {str(value)[:80]!r}")
