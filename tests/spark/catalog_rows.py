"""Compare a query over tables of Spark's catalog with Spark's own answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from sparkfusion import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MICROS = "spark.sql.parquet.outputTimestampType"


@contextmanager
def database(spark: SparkSession, name: str, directory: Path) -> Iterator[str]:
    """A database of Spark's catalog whose tables are below a directory."""
    spark.sql(f"create database {name} location '{directory}'")
    try:
        yield name
    finally:
        spark.sql("use default")
        spark.sql(f"drop database {name} cascade")


def assert_like_spark(session: Session, spark: SparkSession, query: str) -> pa.Table:
    """The answer, which has the rows and the types that Spark's answer has."""
    answer, expected = session.sql(query).collect(), spark.sql(query).toArrow()
    assert rows_of(answer) == rows_of(expected)
    assert [_kind(field.type) for field in answer.schema] == [_kind(field.type) for field in expected.schema]
    return answer


def how(session: Session, table: str) -> str:
    """What `explain` says of a table."""
    lines = session.sql(f"select * from {table}").explain_text().splitlines()
    (line,) = [line for line in lines if line.startswith(f"table {table}: ")]
    return line.removeprefix(f"table {table}: ")


def rows_of(table: pa.Table) -> list[str]:
    """Rows in an order of their own. Instants are numbers: Python has many objects for the same zone."""
    instants = [pa.types.is_timestamp(kind) for kind in table.schema.types]
    plain = [column.cast(pa.int64()) if at else column for at, column in zip(instants, table.columns, strict=True)]
    columns = [column.to_pylist() for column in plain]
    return sorted(repr(row) for row in zip(*columns, strict=True))


def _kind(kind: pa.DataType) -> str:
    """A type in words, without what DataFusion and Spark may spell differently."""
    if pa.types.is_timestamp(kind):
        return f"timestamp {kind.unit} {kind.tz is not None}"
    return str(kind).replace("large_", "").replace("_view", "").replace(" not null", "")
