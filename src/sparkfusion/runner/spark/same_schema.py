"""Answers with the schema that Spark's own answer has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import types as spark

from sparkfusion.runner.spark.spark_catalog import quote
from sparkfusion.runner.spark.spark_types import spark_schema

_NOTHING: dict[type[spark.DataType], object] = {
    spark.StringType: "",
    spark.BooleanType: False,
    spark.DateType: "1970-01-01",
    spark.TimestampType: "1970-01-01 00:00:00",
    spark.TimestampNTZType: "1970-01-01 00:00:00",
}


def why_other_schema(made: pa.Schema, wanted: spark.StructType) -> str | None:
    """What is different about the types of an answer, in words; None if Spark would have the same. Nullability does not
    count: what is inside of columns may differ in it, and `with_schema` makes the columns themselves alike."""
    found = spark_schema(made)
    if len(found) != len(wanted):
        return f"it would have {len(found)} columns, and in Spark it has {len(wanted)}"
    for ours, theirs in zip(found, wanted, strict=True):
        if not _is_alike(ours.dataType, theirs.dataType):
            kinds = (ours.dataType.simpleString(), theirs.dataType.simpleString())
            return f"column {theirs.name!r} would have the type {kinds[0]}, and in Spark it has {kinds[1]}"
    return None


def with_schema(answer: DataFrame, columns: Sequence[str], wanted: spark.StructType, functions: Any) -> DataFrame:
    """The answer with the names, the metadata and the nullability of these columns.

    A column that is never NULL in Spark is checked: if it were NULL here, reading it would fail.

    Args:
        columns: the column of the answer for each wanted one.
        functions: Spark's, that go with the session.
    """
    is_nullable = {field.name: field.nullable for field in answer.schema}
    made: list[Column] = []
    for name, field in zip(columns, wanted, strict=True):
        column = functions.col(quote((name,)))
        if field.nullable and not is_nullable[name]:
            column = functions.when(column.isNotNull(), column)
        elif not field.nullable and is_nullable[name]:
            column = _never_null(column, field, functions)
        made.append(column.alias(field.name, metadata=field.metadata))
    return answer.select(*made)


def _never_null(column: Column, field: spark.StructField, functions: Any) -> Column:
    """The column, which Spark then takes as never NULL: COALESCE(column, raise_error(…), a value).

    The value makes Spark take it so, and the error before it makes sure that the value is never used. There is no such
    value for nested types, so these columns stay as they are.
    """
    if isinstance(field.dataType, spark.NumericType):
        value: object = 0
    elif type(field.dataType) in _NOTHING:
        value = _NOTHING[type(field.dataType)]
    else:
        return column
    words = f"sparkfusion: column {field.name!r} is NULL, which it never is in Spark"
    error = functions.raise_error(functions.lit(words))
    kind = field.dataType
    made: Column = functions.coalesce(column, error.cast(kind), functions.lit(value).cast(kind))
    return made


def _is_alike(ours: spark.DataType, theirs: spark.DataType) -> bool:
    """Whether types are the same except for what may be NULL inside of them."""
    if isinstance(ours, spark.ArrayType) and isinstance(theirs, spark.ArrayType):
        return _is_alike(ours.elementType, theirs.elementType)
    if isinstance(ours, spark.MapType) and isinstance(theirs, spark.MapType):
        return _is_alike(ours.keyType, theirs.keyType) and _is_alike(ours.valueType, theirs.valueType)
    if isinstance(ours, spark.StructType) and isinstance(theirs, spark.StructType):
        return ours.names == theirs.names and all(
            _is_alike(mine.dataType, other.dataType) for mine, other in zip(ours, theirs, strict=True)
        )
    return ours == theirs
