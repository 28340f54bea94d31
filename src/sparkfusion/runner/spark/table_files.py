"""The files of a table as Spark would read them, with the value of each partition; or why the files are not enough."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from sparkfusion.runner.base import CatalogFile

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
_NULL = "__HIVE_DEFAULT_PARTITION__"
_EPOCH = date(1970, 1, 1)
_PLAIN_TEXT = re.compile(r"[\w .,+@~-]+", re.ASCII)
_PLAIN_NAME = re.compile(r"\w+", re.ASCII)
_PLAIN_PATH = re.compile(r"[\w .,+@~=/-]+", re.ASCII)
_WHOLE = re.compile(r"-?(?:0|[1-9]\d*)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WHOLE_TYPES = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_SEPARATOR = "\u0001"
_WHY = {
    "View": "it is a view, whose SQL is Spark's",
    "Project": "Spark computes columns when it reads it, such as padded CHAR columns",
    "InMemoryRelation": "Spark has it in its cache",
    "HiveTableRelation": "Spark reads it with a Hive SerDe",
    "DataSourceV2Relation": "its catalog has a reader of its own",
    "DataSourceV2ScanRelation": "its catalog has a reader of its own",
}


class OnlySparkError(Exception):
    """Why only Spark can read a table."""


@dataclass(frozen=True)
class ListedFiles:
    files: tuple[CatalogFile, ...]
    partitions: tuple[str, ...]


def list_table_files(session: SparkSession, dataframe: DataFrame, optimized: Any) -> ListedFiles:
    """Every file that Spark would read for the whole table. Raises `OnlySparkError` if there is more to it.

    Args:
        optimized: Spark's optimized plan of `dataframe`, a table of the catalog.
    """
    _check_plan(dataframe._jdf.queryExecution().analyzed(), optimized)
    relation = optimized.relation()
    if _class(relation) != _FILES:
        raise OnlySparkError("it is not made of files")
    if _class(relation.fileFormat()) != _PARQUET:
        raise OnlySparkError(_why_format(relation))
    _check_options(session, relation)
    index = relation.location()
    if _simple_class(index) not in _INDEXES:
        raise OnlySparkError(f"its files are listed by {_simple_class(index)}")
    if _simple_class(index) == _FROM_CATALOG:
        index = index.filterPartitions(getattr(getattr(_jvm(session).scala.collection.immutable, "Nil$"), "MODULE$"))
    listed = _jvm(session).org.apache.hadoop.util.StringUtils.join("\n", index.inputFiles())  # all in one call
    paths = [_local_path(url) for url in _lines(listed)]
    columns = spark.StructType.fromJson(json.loads(relation.partitionSchema().json()))
    if not columns.fields:
        return ListedFiles(tuple(CatalogFile(path) for path in sorted(paths)), ())
    known = frozenset(index.partitionSpec().partitions().mkString(_SEPARATOR).split(_SEPARATOR))
    if len({partition.rpartition("],")[2] for partition in known}) < len(known):
        raise OnlySparkError("two partitions are in the same directory")
    files = tuple(CatalogFile(path, _values(path, columns, known)) for path in sorted(paths))
    return ListedFiles(files, tuple(columns.names))


def _check_plan(analyzed: Any, optimized: Any) -> None:
    """The plan of a table of files is the relation and nothing else: no view, no filter, no projection."""
    while _simple_class(analyzed) == "SubqueryAlias":
        analyzed = analyzed.child()
    for plan in (analyzed, optimized):
        kind = _simple_class(plan)
        if kind != "LogicalRelation":
            raise OnlySparkError(_WHY.get(kind, f"Spark's plan of it is not a plain scan but starts with {kind}"))


def _why_format(relation: Any) -> str:
    name = str(relation.toString()).lower()
    if name in ("csv", "json"):
        return f"its format is {name}, where Spark reads bad and empty values in its own way"
    if name == "parquet":  # of Delta, for example
        return f"its Parquet files are read by {_simple_class(relation.fileFormat())}"
    return f"its format is {name}"


def _check_options(session: SparkSession, relation: Any) -> None:
    names = {name.lower() for name in _lines(relation.options().keys().mkString("\n"))}
    if odd := names - _HARMLESS_OPTIONS:
        raise OnlySparkError(f"it has the option {', '.join(sorted(odd))}, which may change what Spark reads")
    for name in _MUST_BE_OFF:
        if str(session.conf.get(name, "false")).lower() != "false":
            raise OnlySparkError(f"{name} is on")


def _local_path(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "file" or parts.netloc:
        raise OnlySparkError(f"its files are at {parts.scheme}://{parts.netloc}, not on this machine")
    path = unquote(parts.path)
    if not _PLAIN_PATH.fullmatch(path):
        raise OnlySparkError("the path of a file has characters that need escapes")
    if not path.endswith(".parquet"):
        raise OnlySparkError("it has files whose names do not end in .parquet")
    return path


def _values(path: str, columns: spark.StructType, known: frozenset[str]) -> tuple[str | None, ...]:
    """The values of a file's partition, as its directories tell them and Spark knows them.

    Spark prints a partition as its values and its directory. So what the directories tell is the same as what Spark
    knows if Spark has printed just that. A partition elsewhere, or with a value in another spelling, is left to Spark.
    """
    directory = path.rsplit("/", 1)[0]
    pairs = [part.partition("=") for part in directory.split("/")[-len(columns.fields) :]]
    values: list[str | None] = []
    printed = []
    for (name, _, text), field in zip(pairs, columns.fields, strict=True):
        if name != field.name or not _PLAIN_NAME.fullmatch(name):
            raise OnlySparkError(f"a partition is in the directory {directory!r}, which is not named after its columns")
        value = None if text == _NULL else text
        values.append(value)
        printed.append("null" if value is None else _as_printed(value, field))
    if f"PartitionPath([{','.join(printed)}],file:{directory})" not in known:
        raise OnlySparkError(f"a partition is in the directory {directory!r}, which does not tell its values")
    return tuple(values)


def _as_printed(text: str, field: spark.StructField) -> str:
    """How Spark prints a partition's value, if it reads the text as we do."""
    kind = field.dataType
    if isinstance(kind, _WHOLE_TYPES) and _WHOLE.fullmatch(text) and text != "-0":
        return text
    if type(kind) is spark.StringType and _PLAIN_TEXT.fullmatch(text) and text != "null":
        return text
    if isinstance(kind, spark.DateType) and _DAY.fullmatch(text):
        try:
            return str((date.fromisoformat(text) - _EPOCH).days)
        except ValueError:
            pass
    raise OnlySparkError(f"partition column {field.name!r} has the value {text!r} of type {kind.simpleString()}")


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _class(thing: Any) -> str:
    return str(thing.getClass().getName())


def _simple_class(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())


def _jvm(session: SparkSession) -> Any:
    return session._jvm
