"""Python functions of Spark as scalar functions of DataFusion.

`spark.udf.register` hands the function to the JVM, whose registry does not give it back: PySpark cannot look one up by
its name. The object that it returns has the function, its return type and its kind.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from datafusion import ScalarUDF, udf
from pyspark.sql import types as spark

from sparkfusion.errors import UserError
from sparkfusion.runner.spark.spark_types import arrow_schema

_ROW_BY_ROW = (100, 101)  # PythonEvalType: SQL_BATCHED_UDF, SQL_ARROW_BATCHED_UDF
_OF_SERIES, _OF_ARRAYS = 200, 250  # SQL_SCALAR_PANDAS_UDF, SQL_SCALAR_ARROW_UDF
_BY_HINT = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary()}
_NAMES = {kind.__name__: arrow for kind, arrow in _BY_HINT.items()}


@dataclass(frozen=True)
class RowByRow:
    """Calls a plain function for each row. It is sent to tasks, which need not have PySpark for it."""

    function: Callable[..., Any]
    gives: pa.DataType

    def __call__(self, *columns: pa.Array) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        return pa.array([self.function(*row) for row in rows], self.gives)


@dataclass(frozen=True)
class OfSeries:
    """Calls a function of pandas Series for each batch."""

    function: Callable[..., Any]
    gives: pa.DataType

    def __call__(self, *columns: pa.Array) -> pa.Array:
        made = self.function(*(column.to_pandas(date_as_object=True) for column in columns))
        return pa.Array.from_pandas(made, type=self.gives)


@dataclass(frozen=True)
class OfArrays:
    """Calls a function of Arrow arrays for each batch."""

    function: Callable[..., Any]
    gives: pa.DataType

    def __call__(self, *columns: pa.Array) -> pa.Array:
        return self.function(*columns).cast(self.gives)


_CALLS: dict[int, Callable[[Callable[..., Any], pa.DataType], Callable[..., pa.Array]]] = {
    **dict.fromkeys(_ROW_BY_ROW, RowByRow),
    _OF_SERIES: OfSeries,
    _OF_ARRAYS: OfArrays,
}


def scalar_udf(name: str, function: Any, input_types: Sequence[pa.DataType] | None) -> ScalarUDF:
    """The scalar function of an object that `udf`, `pandas_udf`, `arrow_udf` or `spark.udf.register` returned."""
    if not all(hasattr(function, part) for part in ("func", "returnType", "evalType", "deterministic")):
        raise UserError(
            f"cannot register function {name!r}: {type(function).__qualname__} is not a function of Spark",
            hint="pass what spark.udf.register or pyspark.sql.functions.udf returned; register_udf takes DataFusion's",
        )
    call = _CALLS.get(function.evalType)
    if call is None:
        raise UserError(
            f"cannot register function {name!r}: it does not return one value for each row",
            hint="only plain functions and functions of pandas Series or Arrow arrays can be registered",
        )
    types = list(input_types) if input_types is not None else _types_of_hints(name, function.func)
    for kind in types:
        _check_input(name, kind)
    gives = arrow_schema(spark.StructType().add("value", function.returnType), "UTC").field(0).type
    volatility = "immutable" if function.deterministic else "volatile"
    made: ScalarUDF = udf(call(function.func, gives), types, gives, volatility, name)
    return made


def _types_of_hints(name: str, function: Callable[..., Any]) -> list[pa.DataType]:
    """The types of a function's arguments, if all of them have hints such as `int` and `str`."""
    hints = [each.annotation for each in inspect.signature(function).parameters.values()]
    found = [_NAMES.get(hint) if isinstance(hint, str) else _BY_HINT.get(hint) for hint in hints]
    if any(kind is None for kind in found):
        raise UserError(
            f"cannot register function {name!r}: the types of its arguments are not known",
            hint="give them: register_spark_udf(name, function, [pa.int64(), pa.string()])",
        )
    return [kind for kind in found if kind is not None]


def _check_input(name: str, kind: pa.DataType) -> None:
    """Values that Spark would hand over as other Python objects: rows, dictionaries, local times."""
    inner = kind.value_type if pa.types.is_list(kind) else kind
    if pa.types.is_nested(inner) or pa.types.is_timestamp(inner) or pa.types.is_duration(inner):
        raise UserError(
            f"cannot register function {name!r}: Spark passes values of type {kind} to it in another form",
            hint="let Spark call the function: session.register_spark(name, spark.sql(…))",
        )
