"""Tables of Spark's catalog by name: what Spark finds, and whether its files say all that Spark would read.

Spark itself resolves the name, lists the files and knows the value of each partition. Its plan of the whole table tells
whether there is more to it than files: a view, a row filter, a padded column, cached rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrameWriter, SparkSession
from pyspark.sql.types import StructType

from sparkfusion.errors import UserError, clean_message
from sparkfusion.runner.base import CatalogTable, ListedTable
from sparkfusion.runner.spark.table_files import OnlySparkError, list_table_files

if TYPE_CHECKING:
    from sparkfusion.runner.spark.spark_tables import SparkTables

_UNKNOWN = frozenset(
    {
        "TABLE_OR_VIEW_NOT_FOUND",
        "SCHEMA_NOT_FOUND",
        "CATALOG_NOT_FOUND",
        "REQUIRES_SINGLE_PART_NAMESPACE",
        "MISSING_CATALOG_ABILITY",
    }
)
_REBASE_MODE = "spark.sql.parquet.datetimeRebaseModeInRead"
_HARMLESS_METADATA = frozenset({"comment"})


class CatalogOfSpark:
    """The catalog of a classic Spark session."""

    def __init__(self, session: SparkSession, tables: SparkTables) -> None:
        self._session = session
        self._tables = tables

    def find(self, name: tuple[str, ...]) -> CatalogTable | None:
        shown = ".".join(name)
        try:
            if not self._session.catalog.tableExists(quote(name)):  # Spark logs an error if a table is not found
                return None
            frame = self._session.table(quote(name))
            plan = frame._jdf.queryExecution().optimizedPlan()
        except PySparkException as error:
            if _is_unknown(error):
                return None
            raise _refused(shown, error) from error
        try:
            schema = self._tables.schema_of(frame)
        except UserError as error:
            error.message = f"cannot read table {shown!r} of Spark's catalog: {error.message}"
            raise
        try:
            _check_columns(frame.schema)
            found = list_table_files(self._session, frame, plan)
        except OnlySparkError as error:
            return CatalogTable(shown, schema, frame, why_spark=str(error))
        except Exception as error:  # Spark's own classes may differ in another version or vendor's build
            return CatalogTable(shown, schema, frame, why_spark=f"Spark does not tell its files ({_first_line(error)})")
        if tuple(schema.names[len(schema) - len(found.partitions) :]) != found.partitions:
            return CatalogTable(shown, schema, frame, why_spark="its partition columns are not the last ones")
        trusts = str(self._session.conf.get(_REBASE_MODE)).upper() == "CORRECTED"
        return CatalogTable(shown, schema, frame, found.files, found.partitions, trusts_dates=trusts)

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

    def save(self, frame: Any, name: str, mode: str, format: str | None, partition_by: tuple[str, ...]) -> None:
        writer: DataFrameWriter = frame.write.mode(mode)
        writer = writer.format(format) if format is not None else writer
        writer = writer.partitionBy(*partition_by) if partition_by else writer
        try:
            writer.saveAsTable(name)
        except (AnalysisException, ParseException) as error:
            raise UserError(f"Spark cannot write table {name!r}: {_brief(error)}") from error


def quote(name: tuple[str, ...]) -> str:
    """A name as Spark's SQL spells it.

    >>> quote(("db", "a`b"))
    '`db`.`a``b`'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in name)


def _is_unknown(error: PySparkException) -> bool:
    condition = error.getCondition() or ""
    return condition.split(".")[0] in _UNKNOWN or "CatalogNotFoundException" in type(error).__name__


def _refused(name: str, error: PySparkException) -> UserError:
    return UserError(
        f"Spark refuses to read table {name!r}: {_brief(error)}",
        hint="what Spark may not read, sparkfusion does not read either; ask spark.table for Spark's own error",
    )


def _brief(error: Exception) -> str:
    return clean_message(error).split("\nJVM stacktrace")[0].split(";\n'")[0].strip()


def _first_line(error: Exception) -> str:
    return next(iter(_brief(error).splitlines()), type(error).__name__)


def _check_columns(schema: StructType) -> None:
    """Columns that Spark pads, checks or fills when it reads them carry a mark in their metadata."""
    for field in schema.fields:
        if any("__CHAR_VARCHAR_TYPE_STRING" in key for key in field.metadata):
            raise OnlySparkError(f"column {field.name!r} is CHAR or VARCHAR, which Spark pads")
        if odd := set(field.metadata) - _HARMLESS_METADATA:
            raise OnlySparkError(f"column {field.name!r} has {', '.join(sorted(odd))}, which only Spark knows")
