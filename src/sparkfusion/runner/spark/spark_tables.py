"""Spark DataFrames as tables: their partitions go to the leaf tasks as Arrow, without passing the driver."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructField

from sparkfusion.errors import UserError
from sparkfusion.ids import TableId
from sparkfusion.plan.table_reads import TableRead, tables_read
from sparkfusion.plan.wire import decode
from sparkfusion.runner.base import AdoptedTable
from sparkfusion.runner.spark.filters import spark_filter
from sparkfusion.runner.spark.rows import Piece, limit_partitions, mark_rows
from sparkfusion.runner.spark.spark_catalog import CatalogOfSpark
from sparkfusion.runner.spark.spark_task import TableInput, table_mark
from sparkfusion.runner.spark.spark_types import arrow_schema

_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"
_TIME_ZONE = "spark.sql.session.timeZone"
_LARGEST_GUESS = 1 << 40
_FEWEST_PARTS = 16


class SparkTables:
    """The DataFrames that a session has registered. Safe to use from several threads."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._frames: dict[TableId, tuple[DataFrame, AdoptedTable]] = {}
        self.catalog = CatalogOfSpark(session, self)

    def adopt(self, source: object) -> AdoptedTable:
        dataframe = self._find_table(source) if isinstance(source, str) else source
        if not isinstance(dataframe, DataFrame):
            kind = f"{type(source).__module__}.{type(source).__qualname__}"
            raise UserError(
                f"cannot register a {kind} as a Spark table", hint="pass a Spark DataFrame or a table's name"
            )
        if dataframe.sparkSession.sparkContext is not self._session.sparkContext:
            raise UserError("the DataFrame belongs to another Spark application")
        if dataframe.isStreaming:
            raise UserError(
                "a streaming DataFrame cannot be registered, because it never ends", hint="register a batch DataFrame"
            )
        parts = max(_FEWEST_PARTS, 4 * self._session.sparkContext.defaultParallelism)
        table = AdoptedTable(next(self._numbers), self.schema_of(dataframe), _size_guess(dataframe), parts)
        with self._lock:
            self._frames[table.id] = (dataframe, table)
        return table

    def release(self, table: TableId) -> None:
        self._frames.pop(table, None)  # without the lock: a garbage collection may come here while it is held

    def reads_table(self, name: str, files: Collection[str], tables: Collection[TableId]) -> bool:
        """Whether a query reads a table: it shares a file with it, or reads tables that have no files to compare."""
        if not self.catalog.exists(name):
            return False
        own = _paths(self._find_table(name))
        adopted = [self._frames[table][0] for table in tables]
        shared = not own.isdisjoint(files) or any(not own.isdisjoint(_paths(each)) for each in adopted)
        return shared or any(_reads_without_files(each) for each in adopted)

    def _find_table(self, name: str) -> DataFrame:
        try:
            return self._session.table(name)
        except AnalysisException as error:
            raise UserError(f"Spark has no table or view {name!r}: {error}") from error

    def read_by(self, plan: bytes) -> bool:
        return bool(self._frames) and bool(tables_read(decode(plan)))

    def rows(self, stage_plan: bytes) -> dict[TableId, Any]:
        """The rows of every table that a stage reads. Asked for once: Spark may divide them differently next time."""
        if not self._frames:
            return {}
        return {read.table: self._rows(read) for read in tables_read(decode(stage_plan))}

    def inputs(self, task_plan: bytes, rows: Mapping[TableId, Any]) -> tuple[tuple[TableInput, ...], list[Piece]]:
        """What one task of the stage reads of the tables, and where Spark finds the rows."""
        inputs: list[TableInput] = []
        pieces: list[Piece] = []
        if not rows:
            return (), pieces
        for read in tables_read(decode(task_plan)):
            _, table = self._frames[read.table]
            inputs.append(TableInput(read.table, read.parts, table.schema.serialize().to_pybytes()))
            piece = _piece(rows[read.table], read.parts, table.parts)
            pieces += [piece] if piece is not None else []
        return tuple(inputs), pieces

    def _rows(self, read: TableRead) -> Any:
        """The table's rows for one stage: record-batch messages, each after a mark that names the table.

        Columns that the query does not use are NULL, so Spark does not even read them. With adaptive execution Spark
        runs the DataFrame's own stages now, under the caller's job tag.
        """
        dataframe, table = self._frames[read.table]
        if self.schema_of(dataframe) != table.schema:
            raise UserError(
                "a setting of the Spark session changed the Arrow types of a registered DataFrame",
                hint=f"set {_TIME_ZONE} and {_LARGE_TYPES} back, or register the DataFrame again",
            )
        placed = _narrow(_number_columns(dataframe), read)
        columns = [
            _column(place, field, needed=field.name in read.columns)
            for place, field in zip(placed.columns, dataframe.schema.fields, strict=True)
        ]
        batches = placed.select(columns)._jdf.toArrowBatchRdd().toJavaRDD()
        return mark_rows(self._session.sparkContext, table_mark(read.table), batches)

    def schema_of(self, dataframe: DataFrame) -> Any:
        """The Arrow schema in which the rows of a DataFrame come."""
        conf = dataframe.sparkSession.conf
        large = str(conf.get(_LARGE_TYPES, "false")).lower() == "true"
        try:
            schema = dataframe.schema
        except ParseException as error:
            hint = "cast the column to a type that PySpark knows; timestamps of nanoseconds to timestamp"
            raise UserError(f"PySpark cannot read the DataFrame's schema: {error}", hint=hint) from error
        found = arrow_schema(schema, str(conf.get(_TIME_ZONE)), large_types=large)
        return pa.schema([field.with_nullable(True) for field in found])  # columns that nobody reads come as NULL


def _number_columns(dataframe: DataFrame) -> DataFrame:
    """The DataFrame with columns that are named by their number: names may differ only in case. Column metadata is
    removed: that of a CHAR column makes Spark pad the values that the column is compared with."""
    numbered = dataframe.toDF(*(f"c{number}" for number in range(len(dataframe.columns))))
    return numbered.select([F.col(place).alias(place, metadata={}) for place in numbered.columns])


def _narrow(placed: DataFrame, read: TableRead) -> DataFrame:
    """Only rows that the plan needs, as far as Spark can decide it."""
    if read.condition is not None:
        condition = spark_filter(read.condition, [F.col(place) for place in placed.columns])
        try:
            placed = placed.where(condition)
        except AnalysisException:  # a user-defined type, which Spark compares with nothing
            return placed
    return placed if read.limit is None else limit_partitions(placed, read.limit)


def _piece(rows: Any, wanted: Sequence[int], parts: int) -> Piece | None:
    """The partitions of a DataFrame that belong to these parts of its table; None if there are none.

    Part p of n has the p-th n-th of the partitions, whatever their number turns out to be.
    """
    count = rows.getNumPartitions()
    found = [i for part in wanted for i in range(part * count // parts, (part + 1) * count // parts)]
    return Piece(rows, tuple(sorted(found))) if found else None


def _paths(dataframe: DataFrame) -> frozenset[str]:
    """The files below a DataFrame, without their schemes and hosts, as plans name them."""
    return frozenset(unquote(urlsplit(url).path).lstrip("/") for url in dataframe.inputFiles())


def _reads_without_files(dataframe: DataFrame) -> bool:
    """Whether a DataFrame reads a table that is not made of files, such as one of a JDBC catalog."""
    leaves = dataframe._jdf.queryExecution().analyzed().collectLeaves().mkString("\n").splitlines()
    relations = [leaf for leaf in leaves if leaf.startswith("Relation")]
    return any(leaf.startswith("RelationV2") for leaf in relations) or bool(relations and not _paths(dataframe))


def _size_guess(dataframe: DataFrame) -> int:
    """The size that Spark's optimizer estimates. A very wrong estimate must not lead to a huge number of tasks."""
    try:
        size = int(str(dataframe._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    except Exception:
        return _LARGEST_GUESS
    return min(size, _LARGEST_GUESS)


def _column(place: str, field: StructField, *, needed: bool) -> Column:
    """The column, or NULL of its type. For a TIME there is no NULL unless spark.sql.timeType.enabled is set."""
    if needed or "time(" in field.dataType.simpleString():
        return F.col(place)
    return F.lit(None).cast(field.dataType).alias(place)
