"""The tables of the dialect's queries: few rows, many types, with NULLs, negative numbers, empty strings, Unicode."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa


def _at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]  # year, month, day and so on


def _decimals(precision: int, scale: int, *texts: str | None) -> pa.Array:
    return pa.array([Decimal(text) if text else None for text in texts], pa.decimal128(precision, scale))


_NUMBERS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6], pa.int32()),
        "i": pa.array([7, -7, 0, None, 2147483647, 3], pa.int32()),
        "j": pa.array([2, 2, -3, 5, 1, None], pa.int32()),
        "l": pa.array([10, -10, None, 9223372036854775807, 0, 4], pa.int64()),
        "d": pa.array([1.5, -2.5, 0.0, None, 1e10, 2.5], pa.float64()),
        "f": pa.array([0.5, -0.25, 3.0, None, 8.0, 1.0], pa.float32()),
        "m": pa.array(
            [Decimal(x) if x else None for x in ("1.25", "-3.75", "0.00", None, "99999.99", "2.50")],
            pa.decimal128(7, 2),
        ),
        "n": pa.array(
            [Decimal(x) if x else None for x in ("2.500", "0.125", "-1.000", "7.000", None, "3.333")],
            pa.decimal128(10, 3),
        ),
        "b": pa.array([True, False, None, True, False, True]),
        "s": pa.array([1, -1, 0, None, 32767, 12], pa.int16()),
    }
)
_TEXTS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6], pa.int32()),
        "s": pa.array(["hello", "", None, "Grüße, Jürgen", "  pad ", "日本語"]),
        "t": pa.array(["l", "x", "y", "ü", None, "本"]),
        "num": pa.array(["12", "-7", None, "3", "40", "0"]),
        "k": pa.array([3, 0, -1, None, 2, 1], pa.int32()),
        "w": pa.array(["a,b,,c", "one", None, "", "x1y22z", "a.b"]),
    }
)
_DAYS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5], pa.int32()),
        "day": pa.array([date(2024, 2, 29), date(1969, 12, 31), None, date(1900, 1, 1), date(2023, 12, 31)]),
        "other": pa.array([date(2023, 2, 28), date(1970, 1, 1), date(2000, 1, 1), None, date(2024, 1, 31)]),
        "at": pa.array(
            [
                _at(2024, 2, 29, 23, 59, 58, 123456),
                _at(1969, 12, 31, 23, 0, 1),
                None,
                _at(2000, 1, 1),
                _at(2023, 7, 4, 12, 30),
            ],
            pa.timestamp("us", "UTC"),
        ),
        "n": pa.array([1, -1, 12, 30, None], pa.int32()),
    }
)
_NESTED = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "a": pa.array([[3, 1, None, 2], [], None, [5, 5]], pa.list_(pa.int32())),
        "words": pa.array([["x", "y"], ["ü", None], [], None], pa.list_(pa.string())),
        "m": pa.array([[("k", 1), ("z", None)], [], None, [("k", -4)]], pa.map_(pa.string(), pa.int32())),
        "st": pa.array(
            [{"x": 1, "y": "one"}, {"x": None, "y": ""}, None, {"x": -3, "y": "ß"}],
            pa.struct([("x", pa.int32()), ("y", pa.string())]),
        ),
    }
)
_GROUPS = pa.table(
    {
        "g": pa.array(["a", "a", "b", None, "b", None, "c"]),
        "h": pa.array([1, 2, 1, 1, None, 1, 3], pa.int32()),
        "v": pa.array([10, 20, 30, None, 50, -60, None], pa.int32()),
        "x": pa.array([1.0, 2.5, None, 4.0, -1.5, 0.0, None], pa.float64()),
    }
)
_OTHERS = pa.table(
    {
        "g": pa.array(["a", "b", "d", None]),
        "H": pa.array([1, 1, 9, 1], pa.int32()),
        "label": pa.array(["first", "second", "third", None]),
    }
)

TABLES = {"numbers": _NUMBERS, "texts": _TEXTS, "days": _DAYS, "nested": _NESTED, "groups": _GROUPS, "others": _OTHERS}
