"""Spark DataFrames as tables: which ones are registered, and which Spark jobs a query that reads one starts."""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructField

from sparkfusion.errors import UserError
from sparkfusion.ids import TableId
from sparkfusion.plan.table_reads import TableRead, tables_read
from sparkfusion.plan.wire import decode
from sparkfusion.runner.base import AdoptedTable, SparkAnswers
from sparkfusion.runner.spark.filters import spark_filter
from sparkfusion.runner.spark.spark_catalog import CatalogOfSpark
from sparkfusion.runner.spark.spark_types import arrow_schema
from sparkfusion.urls import decoded_path

_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"
_TIME_ZONE = "spark.sql.session.timeZone"
LARGEST_GUESS = 1 << 40
_FEWEST_PARTS = 16


class SparkTables(ABC):
    """The DataFrames that a session has registered. Safe to use from several threads.

    `functions` is the module of Spark's functions that goes with the session.
    """

    def __init__(self, session: Any, functions: Any) -> None:
        self._session = session
        self._functions = functions
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._dataframes: dict[TableId, tuple[DataFrame, AdoptedTable]] = {}
        self.catalog = CatalogOfSpark(session, self.schema_of)

    def configuration(self) -> Mapping[str, str]:
        return dict(self._session.conf.getAll)

    def adopt(self, source: object) -> AdoptedTable:
        dataframe = self._find_table(source) if isinstance(source, str) else source
        if not isinstance(dataframe, DataFrame):
            kind = f"{type(source).__module__}.{type(source).__qualname__}"
            raise UserError(
                f"cannot register a {kind} as a Spark table", hint="pass a Spark DataFrame or a table's name"
            )
        if not self._is_own(dataframe):
            raise UserError("the DataFrame belongs to another Spark application")
        if dataframe.isStreaming:
            raise UserError(
                "a streaming DataFrame cannot be registered, because it never ends", hint="register a batch DataFrame"
            )
        parts = max(_FEWEST_PARTS, 4 * self._slots())
        schema = self.schema_of(dataframe)
        # a very wrong estimate must not lead to a huge number of tasks
        table = AdoptedTable(next(self._numbers), schema, min(self._guess_size(dataframe), LARGEST_GUESS), parts)
        with self._lock:
            self._dataframes[table.id] = (dataframe, table)
        return table

    @contextmanager
    def temporary_views(self, tables: Mapping[str, str]) -> Iterator[SparkAnswers]:
        taken = {found.name for found in self._session.catalog.listTables() if found.isTemporary}.intersection(tables)
        if taken:
            raise UserError(
                f"Spark SQL cannot read the tables {', '.join(sorted(taken))}: the Spark session has temporary views "
                "of these names",
                hint="use another Spark session, such as spark.newSession()",
            )
        made = []
        try:
            for name, url in tables.items():
                self._session.read.parquet(url).createTempView(name)
                made.append(name)
            yield lambda text: self._session.sql(text).toArrow()
        finally:
            for name in made:
                self._session.catalog.dropTempView(name)

    def release(self, table: TableId) -> None:
        self._dataframes.pop(table, None)  # without the lock: a garbage collection may come here while it is held

    def reads_table(self, name: str, files: Collection[str], tables: Collection[TableId]) -> bool:
        """Whether a query reads a table: it shares a file with it, or reads tables that have no files to compare."""
        if not self.catalog.exists(name):
            return False
        own = paths_of(self._find_table(name))
        adopted = [self._dataframes[table][0] for table in tables]
        shared = not own.isdisjoint(files) or any(not own.isdisjoint(paths_of(each)) for each in adopted)
        return shared or any(self._reads_without_files(each) for each in adopted)

    @abstractmethod
    def _reads_without_files(self, dataframe: DataFrame) -> bool:
        """Whether a DataFrame reads a table that is not made of files, such as one of a JDBC catalog, or may do so."""

    def _find_table(self, name: str) -> DataFrame:
        try:
            found: DataFrame = self._session.table(name)
            self._analyse(found)
            return found
        except AnalysisException as error:
            raise UserError(f"Spark has no table or view {name!r}: {error}") from error

    def read_by(self, plan: bytes) -> bool:
        return bool(self._dataframes) and bool(tables_read(decode(plan)))

    def narrow_table(self, read: TableRead) -> DataFrame:
        """The table for a stage that reads it: columns that the query does not use are NULL, so Spark does not even
        read them, and rows that the query would drop are left out, as far as Spark can tell."""
        dataframe, table = self._dataframes[read.table]
        if self.schema_of(dataframe) != table.schema:
            raise UserError(
                "the Spark session's settings changed after the DataFrame was registered, so its column types differ",
                hint=f"set {_TIME_ZONE} and {_LARGE_TYPES} back, or register the DataFrame again",
            )
        numbered = self._narrow(self._number_columns(dataframe), read)
        columns = [
            self._column(name, field, needed=field.name in read.columns)
            for name, field in zip(numbered.columns, dataframe.schema.fields, strict=True)
        ]
        return numbered.select(columns)

    @abstractmethod
    def _is_own(self, dataframe: DataFrame) -> bool:
        """Whether the DataFrame belongs to this session's Spark application."""

    @abstractmethod
    def _slots(self) -> int:
        """How many tasks Spark runs at once."""

    @abstractmethod
    def _guess_size(self, dataframe: DataFrame) -> int:
        """The bytes that Spark's optimizer estimates; `LARGEST_GUESS` if it cannot."""

    @abstractmethod
    def _limit(self, dataframe: DataFrame, rows: int) -> DataFrame:
        """At least this many rows of the DataFrame, or all."""

    def _analyse(self, dataframe: DataFrame) -> None:
        """Let Spark raise now if it cannot compute the DataFrame; a classic session has done so already."""
        del dataframe

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

    def _number_columns(self, dataframe: DataFrame) -> DataFrame:
        """The DataFrame with columns that are named by their number: names may differ only in case. Column metadata is
        removed: that of a CHAR column makes Spark pad the values that the column is compared with."""
        numbered = dataframe.toDF(*(f"c{number}" for number in range(len(dataframe.columns))))
        return numbered.select([self._functions.col(name).alias(name, metadata={}) for name in numbered.columns])

    def _narrow(self, numbered: DataFrame, read: TableRead) -> DataFrame:
        """Only rows that the plan needs, as far as Spark can decide it."""
        if read.condition is not None:
            columns = [self._functions.col(name) for name in numbered.columns]
            try:
                kept = numbered.where(spark_filter(read.condition, columns, self._functions))
                self._analyse(kept)
            except AnalysisException:  # a user-defined type, which Spark compares with nothing
                return numbered
            numbered = kept
        return numbered if read.limit is None else self._limit(numbered, read.limit)

    def _column(self, name: str, field: StructField, *, needed: bool) -> Column:
        """The column, or NULL of its type. For a TIME there is no NULL unless spark.sql.timeType.enabled is set."""
        column: Column = self._functions.col(name)
        if needed or "time(" in field.dataType.simpleString():
            return column
        nothing: Column = self._functions.lit(None).cast(field.dataType).alias(name)
        return nothing


def paths_of(dataframe: DataFrame) -> frozenset[str]:
    """The files below a DataFrame, without their schemes and hosts, as plans name them."""
    return frozenset(decoded_path(url).lstrip("/") for url in dataframe.inputFiles())
