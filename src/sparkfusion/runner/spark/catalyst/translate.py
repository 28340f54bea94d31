"""A Spark DataFrame as SQL text over its leaves: tables, files, and rows that Spark holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from sparkfusion.ids import new_query_id
from sparkfusion.runner.spark.catalyst.expression_text import NoTextError
from sparkfusion.runner.spark.catalyst.plan_text import PlanWriter, output_names, rename_columns
from sparkfusion.runner.spark.catalyst.same_plan import dataframe_of, means_the_same
from sparkfusion.runner.spark.catalyst.scala_objects import class_name, items
from sparkfusion.runner.spark.spark_catalog import quote

_ROWS = "_rows"


@dataclass(frozen=True)
class SparkQuery:
    """A query of Spark as text in Spark's SQL.

    Attributes:
        columns: the columns of the text that make the answer. A column may be there several times.
        leaves: what the names in the text mean: how to show each to people, and the Spark DataFrame of all its rows.
    """

    text: str
    columns: tuple[str, ...]
    leaves: Mapping[str, tuple[str, DataFrame]]


def translate(dataframe: DataFrame) -> SparkQuery:
    """The text of a DataFrame. Raises `NoTextError` if it has none, or if Spark reads the text in another way.

    Rows in Spark's cache are a leaf too, because they may be older than the files that they came from.
    """
    session = dataframe.sparkSession
    prefix = f"sparkfusion_{new_query_id()}"
    untyped: Any = dataframe
    try:
        plan = untyped._jdf.queryExecution().withCachedData()
        check, text = (PlanWriter(untyped.sparkSession._jvm, prefix, is_nested=nested) for nested in (True, False))
        nested, written = check.write(plan), text.write(plan)
        if not means_the_same(session, nested, check.leaves, plan):
            raise NoTextError("Spark plans its SQL text in another way")
        return SparkQuery(_with_leaves(written, text.leaves), tuple(output_names(plan)), _leaves(session, text.leaves))
    except (PySparkException, Py4JError) as error:
        raise NoTextError(f"Spark has no SQL text for a part of it ({_brief(error)})") from error


def _leaves(session: SparkSession, plans: Mapping[str, Any]) -> dict[str, tuple[str, DataFrame]]:
    return {f"{name}{_ROWS}": (_describe_leaf(plan), dataframe_of(session, plan)) for name, plan in plans.items()}


def _with_leaves(text: str, plans: Mapping[str, Any]) -> str:
    """The text, after queries that give the columns of its leaves their numbers."""
    made = []
    for name, plan in plans.items():
        names = [str(attribute.name()) for attribute in items(plan.output())]
        if len({each.lower() for each in names}) < len(names):
            raise NoTextError(f"two columns of {_describe_leaf(plan)} have the same name")
        chosen = rename_columns([quote((each,)) for each in names], output_names(plan))
        made.append(f"{name} AS (SELECT {chosen} FROM {name}{_ROWS})")
    if not made:
        return text
    more = text.removeprefix("WITH ")
    return f"WITH {', '.join(made)}{', ' if more != text else ' '}{more}"


def _describe_leaf(leaf: Any) -> str:
    """A leaf in words: the name of a table, the place of files, or what holds its rows."""
    kind = class_name(leaf)
    if kind == "LogicalRelation":
        if leaf.catalogTable().isDefined():
            return str(leaf.catalogTable().get().identifier().unquotedString())
        if class_name(leaf.relation()) == "HadoopFsRelation":
            return str(leaf.relation().location().rootPaths().mkString(", "))
    if kind == "HiveTableRelation":
        return str(leaf.tableMeta().identifier().unquotedString())
    return {"InMemoryRelation": "rows in Spark's cache", "LocalRelation": "rows of the driver"}.get(kind, kind)


def _brief(error: Exception) -> str:
    """Spark's words in one line."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage() or java.toString()) if java is not None else str(error)
    return text.splitlines()[0].split(". SQLSTATE")[0]
