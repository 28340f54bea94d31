"""The files of a table as Spark would read them, with the value of each partition; or why the files are not enough."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from sparkfusion.feed.ready.hive import NULL_VALUE
from sparkfusion.runner.base import CatalogFile, SparkDates
from sparkfusion.runner.spark.delta_table import is_delta, list_delta_files
from sparkfusion.runner.spark.iceberg_table import iceberg_table, list_iceberg_files
from sparkfusion.runner.spark.listed_files import (
    PLAIN_NAME,
    PLAIN_TEXT,
    ListedFiles,
    OnlySparkError,
    class_name,
    file_path,
    lines,
    simple_class,
)

_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_FROM_CATALOG = "CatalogFileIndex"
_INDEXES = frozenset({_FROM_CATALOG, "InMemoryFileIndex", "PrunedInMemoryFileIndex"})
_HARMLESS_OPTIONS = frozenset(
    {"path", "serialization.format", "compression", "parquet.compression", "mergeschema", "partitionoverwritemode"}
)
_MUST_BE_OFF = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
)
_DATES_MODE = "spark.sql.parquet.datetimeRebaseModeInRead"
_INT96_MODE = "spark.sql.parquet.int96RebaseModeInRead"
_AS_INSTANTS = {"spark.sql.parquet.int96AsTimestamp": "true", "spark.sql.parquet.int96TimestampConversion": "false"}
_EPOCH = date(1970, 1, 1)
_WHOLE = re.compile(r"-?(?:0|[1-9]\d*)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WHOLE_TYPES = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_STATUS = re.compile(r"; isDirectory=false; length=(?P<size>\d+);.*?; modification_time=(?P<modified>\d+);")
_SEPARATOR = "\u0001"
_WHY = {
    "View": "it is a view, whose SQL is Spark's",
    "Project": "Spark computes columns when it reads it, such as padded CHAR columns",
    "InMemoryRelation": "Spark has it in its cache",
    "HiveTableRelation": "Spark reads it with a Hive SerDe",
    "DataSourceV2Relation": "its catalog has a reader of its own",
    "DataSourceV2ScanRelation": "its catalog has a reader of its own",
}


def list_table_files(session: SparkSession, dataframe: DataFrame, optimized: Any) -> ListedFiles:
    """Every file that Spark would read for the whole table. Raises `OnlySparkError` if the files are not enough.

    Args:
        optimized: Spark's optimized plan of `dataframe`, a table of the catalog.
    """
    analyzed = _without_names(dataframe._jdf.queryExecution().analyzed())
    if (iceberg := iceberg_table(analyzed, optimized)) is not None:
        return list_iceberg_files(iceberg, analyzed.options(), session.conf, dataframe.columns)
    _check_plan(analyzed, optimized)
    relation = optimized.relation()
    if class_name(relation) != _FILES:
        raise OnlySparkError("it is not made of files")
    if is_delta(relation):
        _check_options(session, relation)
        return list_delta_files(relation, lambda index: _list_all(session, index))
    if class_name(relation.fileFormat()) != _PARQUET:
        raise OnlySparkError(_why_format(relation))
    _check_options(session, relation)
    index = relation.location()
    if simple_class(index) not in _INDEXES:
        raise OnlySparkError(f"its files are listed by {simple_class(index)}")
    if simple_class(index) == _FROM_CATALOG:
        index = index.filterPartitions(getattr(getattr(_jvm(session).scala.collection.immutable, "Nil$"), "MODULE$"))
    listed = _with_sizes(index, [file_path(url) for url in _list_all(session, index)])
    columns = spark.StructType.fromJson(json.loads(relation.partitionSchema().json()))
    if not columns.fields:
        return ListedFiles(listed)
    known = frozenset(index.partitionSpec().partitions().mkString(_SEPARATOR).split(_SEPARATOR))
    if len({partition.rpartition("],")[2] for partition in known}) < len(known):
        raise OnlySparkError("two partitions are in the same directory")
    files = tuple(replace(file, values=_values(file.path, columns, known)) for file in listed)
    return ListedFiles(files, tuple(columns.names))


def read_dates(session: SparkSession) -> SparkDates:
    """What Spark's settings say about dates and timestamps in Parquet files."""
    odd = [name for name, usual in _AS_INSTANTS.items() if str(session.conf.get(name)).lower() != usual]
    return SparkDates(
        trusts_dates=str(session.conf.get(_DATES_MODE)).upper() == "CORRECTED",
        trusts_int96=str(session.conf.get(_INT96_MODE)).upper() == "CORRECTED",
        why_int96=f"{odd[0]} is {session.conf.get(odd[0])}" if odd else None,
    )


def _list_all(session: SparkSession, index: Any) -> list[str]:
    """The URLs of all files that a file index of Spark's lists, in one call."""
    return lines(_jvm(session).org.apache.hadoop.util.StringUtils.join("\n", index.inputFiles()))


def _with_sizes(index: Any, paths: list[str]) -> tuple[CatalogFile, ...]:
    """The files in the order of their paths. If they are in an object store, with what Spark's listing says of them."""
    if not any("://" in path for path in paths):
        return tuple(CatalogFile(path) for path in sorted(paths))
    if len({urlsplit(path)[:2] for path in paths}) > 1:
        raise OnlySparkError("its files are in several places")
    statuses = index.allFiles().mkString(_SEPARATOR).split(_SEPARATOR)  # in the order of `inputFiles`
    found = [_STATUS.search(status) for status in statuses]
    if len(found) != len(paths) or None in found:
        raise OnlySparkError("Spark does not report the sizes of its files")
    sizes = [(int(status["size"]), int(status["modified"])) for status in found if status is not None]
    return tuple(CatalogFile(path, (), *each) for path, each in sorted(zip(paths, sizes, strict=True)))


def _without_names(analyzed: Any) -> Any:
    """A plan without what only names it: aliases, and a SELECT of all columns as they are."""
    while simple_class(analyzed) == "SubqueryAlias" or (
        simple_class(analyzed) == "Project" and analyzed.output().equals(analyzed.child().output())
    ):
        analyzed = analyzed.child()
    return analyzed


def _check_plan(analyzed: Any, optimized: Any) -> None:
    """The plan of a table of files is the relation and nothing else: no view, no filter, no projection."""
    for plan in (analyzed, optimized):
        kind = simple_class(plan)
        if kind != "LogicalRelation":
            raise OnlySparkError(_WHY.get(kind, f"Spark's plan of it is not a plain scan but starts with {kind}"))


def _why_format(relation: Any) -> str:
    name = str(relation.toString()).lower()
    if name in ("csv", "json"):
        return f"its format is {name}, where Spark reads bad and empty values in its own way"
    if name == "parquet":  # of Delta, for example
        return f"its Parquet files are read by {simple_class(relation.fileFormat())}"
    return f"its format is {name}"


def _check_options(session: SparkSession, relation: Any) -> None:
    names = {name.lower() for name in lines(relation.options().keys().mkString("\n"))}
    if odd := names - _HARMLESS_OPTIONS:
        raise OnlySparkError(f"it has the option {', '.join(sorted(odd))}, which may change what Spark reads")
    for name in _MUST_BE_OFF:
        if str(session.conf.get(name, "false")).lower() != "false":
            raise OnlySparkError(f"{name} is on")


def _values(path: str, columns: spark.StructType, known: frozenset[str]) -> tuple[str | None, ...]:
    """The values of a file's partition, taken from the names of its directories and compared with Spark's.

    Spark prints a partition as its values and its directory (`known`). If it has printed just these values, they are
    right. A partition elsewhere, or with a value in another spelling, is left to Spark.
    """
    directory = path.rsplit("/", 1)[0]
    pairs = [part.partition("=") for part in directory.split("/")[-len(columns.fields) :]]
    values: list[str | None] = []
    printed = []
    for (name, _, text), field in zip(pairs, columns.fields, strict=True):
        if name != field.name or not PLAIN_NAME.fullmatch(name):
            raise OnlySparkError(f"a partition is in the directory {directory!r}, which is not named after its columns")
        value = None if text == NULL_VALUE else text
        values.append(value)
        printed.append("null" if value is None else _print_value(value, field))
    place = directory if "://" in directory else f"file:{directory}"
    if f"PartitionPath([{','.join(printed)}],{place})" not in known:
        raise OnlySparkError(
            f"a partition is in the directory {directory!r}, whose name does not contain the partition's values"
        )
    return tuple(values)


def _print_value(text: str, field: spark.StructField) -> str:
    """How Spark prints a partition's value, if it reads the text as we do."""
    kind = field.dataType
    if isinstance(kind, _WHOLE_TYPES) and _WHOLE.fullmatch(text) and text != "-0":
        return text
    if type(kind) is spark.StringType and PLAIN_TEXT.fullmatch(text) and text != "null":
        return text
    if isinstance(kind, spark.DateType) and _DAY.fullmatch(text):
        try:
            return str((date.fromisoformat(text) - _EPOCH).days)
        except ValueError:
            pass
    raise OnlySparkError(f"partition column {field.name!r} has the value {text!r} of type {kind.simpleString()}")


def _jvm(session: SparkSession) -> Any:
    return session._jvm
