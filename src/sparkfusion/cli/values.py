"""Convert Arrow columns to plain values and to text, with exact decimals and nanoseconds, which Python's types would
lose."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

Plain = bool | int | float | Decimal | str | list[Any] | dict[str, Any] | None


def plain(column: pa.Array) -> list[Plain]:
    """One value for each row, of types that JSON knows (decimals stay decimals); None is NULL."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(column.storage)
    if types.is_dictionary(kind):
        return plain(column.dictionary_decode())
    if types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(column))
    if types.is_temporal(kind) and not types.is_duration(kind) and not types.is_interval(kind):
        return list(column.cast(pa.string()).to_pylist())
    if types.is_duration(kind):
        return [None if n is None else f"{n} {kind.unit}" for n in column.cast(pa.int64()).to_pylist()]
    if types.is_interval(kind):
        return [None if v is None else f"{v.months} mons {v.days} days {v.nanoseconds} ns" for v in column.to_pylist()]
    if isinstance(kind, pa.StructType):
        return _structs(column)
    if types.is_map(kind):
        return [None if not row.is_valid else _pairs(row.values) for row in column]
    if hasattr(kind, "value_type"):  # every kind of list
        return [None if not row.is_valid else plain(row.values) for row in column]
    return [value.hex() if isinstance(value, bytes) else value for value in column.to_pylist()]


def _structs(column: pa.StructArray) -> list[Plain]:
    names = [field.name for field in column.type]
    children = [plain(child) for child in column.flatten()]
    valid = column.is_valid().to_pylist()
    return [
        dict(zip(names, (child[row] for child in children), strict=True)) if valid[row] else None
        for row in range(len(column))
    ]


def _pairs(entries: pa.StructArray) -> Plain:
    keys, values = (plain(child) for child in entries.flatten())
    return {text(key): value for key, value in zip(keys, values, strict=True)}


def encode(value: Plain) -> str:
    """The value as JSON. Decimals are numbers with all their digits; NaN and the infinities, which JSON lacks, are
    strings.

    >>> encode({"a": Decimal("1.10"), "b": [None, float("nan")]})
    '{"a":1.10,"b":[null,"NaN"]}'
    """
    match value:
        case Decimal():
            return format(value, "f")
        case float() if not math.isfinite(value):
            return f'"{_special(value)}"'
        case list():
            return f"[{','.join(map(encode, value))}]"
        case dict():
            return "{" + ",".join(f"{encode(key)}:{encode(entry)}" for key, entry in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def text(value: Plain) -> str:
    """The value for people and CSV: strings without quotes, nested values as JSON."""
    match value:
        case str():
            return value
        case float() if not math.isfinite(value):
            return _special(value)
    return encode(value)


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
