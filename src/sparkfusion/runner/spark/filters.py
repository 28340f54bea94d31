"""Conditions of a plan as Spark filters. Spark may keep rows that DataFusion drops, but drops none that DataFusion
keeps.

For values of one type the two compare differently in one case: a NaN whose sign bit is set, as 0.0 / 0.0 gives it on
most machines. To DataFusion it is less than every number, to Spark greater. Both treat other NaNs as equal and greater
than every number, and -0.0 as 0.0, and compare texts and binaries byte by byte.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyspark.sql.functions
from pyspark.sql import Column

from sparkfusion.plan.conditions import (
    Compare,
    Condition,
    Constant,
    Every,
    IsIn,
    IsLike,
    IsNull,
    IsTrue,
    Not,
    Operator,
    Some,
)

_COMPARE: dict[Operator, Callable[[Column, Column], Column]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EPOCH = datetime(1970, 1, 1)


def spark_filter(condition: Condition, columns: Sequence[Column], functions: Any = pyspark.sql.functions) -> Column:
    """A filter that is true for every row for which the condition is true. `columns` are all columns of the table,
    `functions` is the module that makes columns of their kind."""
    match condition:
        case Compare() if condition.constant.kind == "float":
            return _compare_floats(columns[condition.column.index], condition.operator, condition.constant, functions)
        case Compare():
            return _COMPARE[condition.operator](
                columns[condition.column.index], _literal(condition.constant, functions)
            )
        case IsIn() if any(each.kind == "float" for each in condition.constants):
            column = columns[condition.column.index]
            return _join(operator.or_, [_compare_floats(column, "=", each, functions) for each in condition.constants])
        case IsIn():
            return columns[condition.column.index].isin([_literal(each, functions) for each in condition.constants])
        case IsLike():
            return columns[condition.column.index].like(condition.pattern)
        case IsNull():
            return columns[condition.column.index].isNull()
        case IsTrue():
            return columns[condition.column.index]
        case Not():
            return ~spark_filter(condition.condition, columns, functions)
        case Every():
            return _join(operator.and_, [spark_filter(each, columns, functions) for each in condition.conditions])
        case Some():
            return _join(operator.or_, [spark_filter(each, columns, functions) for each in condition.conditions])


def _join(join: Callable[[Column, Column], Column], parts: Sequence[Column]) -> Column:
    """Combine the conditions as a balanced tree: Spark walks expressions recursively."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return join(_join(join, parts[:middle]), _join(join, parts[middle:]))


def _compare_floats(column: Column, comparison: Operator, constant: Constant, functions: Any) -> Column:
    """Compare floats so that no row is lost. Not for use under NOT, where keeping too many rows means losing some."""
    value = float(constant.value)
    found: Column = functions.lit(True)
    if math.isnan(value):
        return found
    found = _COMPARE[comparison](column, functions.lit(value))
    return found | functions.isnan(column) if comparison in ("<", "<=") else found


def _literal(constant: Constant, functions: Any) -> Column:
    made: Column
    match constant.kind:
        case "date":
            made = functions.date_from_unix_date(functions.lit(constant.value))
        case "instant":
            made = functions.timestamp_micros(functions.lit(constant.value))
        case "wall clock":
            moment = _EPOCH + timedelta(microseconds=int(constant.value))
            made = functions.lit(moment.isoformat(" ")).cast("timestamp_ntz")
        case _:
            made = functions.lit(constant.value)
    return made
