"""Simple conditions of a query, with which feeds skip files by the least and greatest value in them."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pyarrow as pa

from sparkfusion.feed.provider import ScanFilter

ColumnComparison = tuple[str, str, Any]
"""Column, operator, value."""


def comparisons(
    filters: Iterable[ScanFilter], columns: Iterable[str], kinds: Collection[type] = (int, datetime.date)
) -> Iterator[ColumnComparison]:
    """The conditions that compare one of the columns with an integer or a date, or with a value of the given kinds.

    Floats are never safe: bounds do not include NaN, which DataFusion sorts above all numbers. Strings and timestamps
    are safe only if the format forbids writers to truncate their bounds.
    """
    known = set(columns)
    for each in filters:
        value = each.value.as_py() if isinstance(each.value, pa.Scalar) else each.value
        if each.column in known and each.operator is not None and type(value) in kinds:
            yield each.column, each.operator, value


def may_hold(operator: str, value: Any, least: Any, greatest: Any) -> bool:
    """Whether a value between these bounds can meet the comparison. True if the bounds are unknown.

    >>> may_hold("<", 5, 5, 9), may_hold("=", 7, 5, 9), may_hold("!=", 5, 5, 5)
    (False, True, False)
    """
    if least is None or greatest is None or type(least) is not type(value):
        return True
    match operator:
        case "=":
            return bool(least <= value <= greatest)
        case "!=":
            return not least == value == greatest
        case "<":
            return bool(least < value)
        case "<=":
            return bool(least <= value)
        case ">":
            return bool(greatest > value)
        case ">=":
            return bool(greatest >= value)
    return True
