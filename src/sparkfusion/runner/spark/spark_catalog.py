"""Tables of Spark's catalog by name: what Spark finds, and whether its files contain just what Spark would read.

Spark itself resolves the name, lists the files and knows the value of each partition. Its plan of the whole table tells
whether there is more to it than files: a view, a row filter, a padded column, cached rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.types import StructType

from sparkfusion.errors import ExternalError, UserError, clean_message, first_words
from sparkfusion.runner.base import CatalogFile, CatalogTable, ListedTable, SparkWrite
from sparkfusion.runner.spark.classic_parts import Py4JError, Py4JJavaError
from sparkfusion.runner.spark.listed_files import OnlySparkError
from sparkfusion.runner.spark.spark_errors import spark_error
from sparkfusion.runner.spark.table_files import list_table_files, read_dates
from sparkfusion.runner.table_versions import split_version

_UNKNOWN = frozenset(
    {
        "TABLE_OR_VIEW_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
        "CATALOG_NOT_FOUND",
        "REQUIRES_SINGLE_PART_NAMESPACE",
        "MISSING_CATALOG_ABILITY",
    }
)
_SPARKS_ERRORS = (PySparkException, Py4JJavaError)
_HARMLESS_METADATA = frozenset({"comment"})


class CatalogOfSpark:
    """The catalog of a Spark session. `arrow_schema`: tells in which Arrow types the rows of a DataFrame come."""

    def __init__(self, session: SparkSession, arrow_schema: Callable[[DataFrame], pa.Schema]) -> None:
        self._session = session
        self._arrow_schema = arrow_schema
        self._named: dict[str, tuple[str, Any]] = {}

    @contextmanager
    def name_dataframes(self, dataframes: Mapping[str, tuple[str, Any]]) -> Iterator[None]:
        self._named.update(dataframes)
        try:
            yield
        finally:
            for name in dataframes:
                del self._named[name]

    def read_end(self, file: CatalogFile, count: int) -> bytes:
        jvm: Any = self._session._jvm
        try:
            path = jvm.org.apache.hadoop.fs.Path(file.path)
            stream = path.getFileSystem(self._session._jsparkSession.sessionState().newHadoopConf()).open(path)
            try:
                stream.seek(file.size - count)
                return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream, count))
            finally:
                stream.close()
        except Exception as error:
            raise ExternalError(f"Spark cannot read {file.path}: {first_words(error)}") from error

    def find(self, name: tuple[str, ...]) -> CatalogTable | None:
        shown, named = self._named.get(name[-1], (".".join(name), None))
        if named is None and not self._has(name):
            return self._find_version(name)
        try:
            dataframe = named if named is not None else self._session.table(quote(name))
            plan = _optimized_plan(dataframe)
        except _SPARKS_ERRORS as error:
            raise _refusal(shown, error) from error
        return self._describe(shown, dataframe, plan)

    def _find_version(self, name: tuple[str, ...]) -> CatalogTable | None:
        """A version of a table, which its catalog keeps. Spark's own Parquet tables have none, and Spark says so."""
        shown, version = ".".join(name), split_version(name)
        if version is None or not self._has(version[0]):
            return None
        try:
            dataframe = self._session.sql(f"SELECT * FROM {quote(version[0])} {version[1]}")
            plan = _optimized_plan(dataframe)
        except _SPARKS_ERRORS as error:
            raise _refusal(shown, error) from error
        return self._describe(shown, dataframe, plan)

    def _describe(self, shown: str, dataframe: DataFrame, plan: Any) -> CatalogTable:
        """What Spark would read. `plan`: Spark's optimized plan of `dataframe`; None if Spark does not show it."""
        schema = self._schema_of(shown, dataframe)
        try:
            if plan is None:
                raise OnlySparkError("this Spark session gives no access to query plans")
            found = list_table_files(self._session, dataframe, plan)
            _check_columns(dataframe.schema)
        except OnlySparkError as error:
            return CatalogTable(shown, schema, dataframe, why_spark=str(error))
        except Exception as error:  # Spark's own classes may differ in another version or vendor's build
            return CatalogTable(
                shown, schema, dataframe, why_spark=f"Spark does not report its files ({_first_line(error)})"
            )
        if not set(found.partitions) <= set(schema.names):
            return CatalogTable(shown, schema, dataframe, why_spark="its partition columns are not columns of it")
        dates = read_dates(self._session)
        dates = replace(dates, why_int96=found.why_int96 or dates.why_int96)
        return CatalogTable(shown, schema, dataframe, found.files, found.partitions, dates, origin=found.origin)

    def _schema_of(self, shown: str, dataframe: DataFrame) -> pa.Schema:
        try:
            return self._arrow_schema(dataframe)
        except UserError as error:
            error.message = f"cannot read table {shown!r} of Spark's catalog: {error.message}"
            raise

    def _has(self, name: tuple[str, ...]) -> bool:
        """Asked first, because Spark logs an error when it does not find a table that it should read."""
        try:
            return bool(self._session.catalog.tableExists(quote(name)))
        except _SPARKS_ERRORS as error:
            if isinstance(error, PySparkException) and _is_unknown(error):
                return False
            raise _refusal(".".join(name), error) from error

    def use(self, name: tuple[str, ...]) -> None:
        try:
            self._session.sql(f"USE {quote(name)}")
        except PySparkException as error:
            raise UserError(f"Spark cannot use {'.'.join(name)!r}: {_brief(error)}") from error

    def tables(self, database: str | None = None) -> list[ListedTable]:
        try:
            listed = self._session.catalog.listTables(database)
        except PySparkException as error:
            raise UserError(f"Spark cannot list the tables of {database!r}: {_brief(error)}") from error
        return [
            ListedTable(each.catalog or "", ".".join(each.namespace or []), each.name, each.tableType)
            for each in listed
        ]

    def exists(self, table: str) -> bool:
        try:
            return bool(self._session.catalog.tableExists(table))
        except PySparkException as error:
            raise UserError(f"Spark cannot find table {table!r}: {_brief(error)}") from error

    def save(self, dataframe: Any, write: SparkWrite) -> None:
        writer: DataFrameWriter = dataframe.write.mode(write.mode)
        writer = writer.format(write.format) if write.format is not None else writer
        writer = writer.partitionBy(*write.partition_by) if write.partition_by else writer
        try:
            writer.saveAsTable(write.table)
        except (AnalysisException, ParseException) as error:
            raise UserError(f"Spark cannot write table {write.table!r}: {_brief(error)}") from error
        except PySparkException as error:
            raise spark_error(error, ()) from error


def quote(name: tuple[str, ...]) -> str:
    """A name as Spark's SQL spells it.

    >>> quote(("db", "a`b"))
    '`db`.`a``b`'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in name)


def _is_unknown(error: PySparkException) -> bool:
    condition = error.getCondition() or ""
    return condition.split(".")[0] in _UNKNOWN or "CatalogNotFoundException" in type(error).__name__


def _optimized_plan(dataframe: DataFrame) -> Any:
    """Spark's plan of a whole table; None if this build of Spark does not show it. Making it may refuse access."""
    if not hasattr(dataframe, "_jdf"):  # Spark Connect, which finds out only now whether it may read the table
        _ = dataframe.schema
        return None
    try:
        return dataframe._jdf.queryExecution().optimizedPlan()
    except Py4JJavaError:
        raise
    except Py4JError:  # the method may not be called
        return None


def _refusal(name: str, error: Exception) -> UserError:
    return UserError(
        f"Spark refuses to read table {name!r}: {_brief(error)}",
        hint="sparkfusion reads only what Spark may read; spark.table(…) shows Spark's full error",
    )


def _brief(error: Exception) -> str:
    """Spark's words, without its stack traces and plans."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception).splitlines()[0]
    return clean_message(error).split("\nJVM stacktrace")[0].split(";\n'")[0].strip()


def _first_line(error: Exception) -> str:
    return next(iter(_brief(error).splitlines()), type(error).__name__)


def _check_columns(schema: StructType) -> None:
    """Columns that Spark compares or fills in its own way carry a mark in their metadata."""
    for field in schema.fields:
        if any("__CHAR_VARCHAR_TYPE_STRING" in key for key in field.metadata):
            raise OnlySparkError(f"column {field.name!r} is VARCHAR, and only Spark enforces its length")
        if odd := set(field.metadata) - _HARMLESS_METADATA:
            raise OnlySparkError(f"column {field.name!r} has {', '.join(sorted(odd))}, which only Spark knows")
