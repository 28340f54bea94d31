"""A query of a Spark user, SQL text or a DataFrame, and what Spark itself does with it."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark.sql.functions
from pyspark.sql import DataFrame, SparkSession

from sparkfusion.errors import UserError
from sparkfusion.runner.spark.same_schema import why_other_schema, with_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkfusion.runner.spark.catalyst.translate import SparkQuery

_UTC = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "+00:00"})
_ZONE = "spark.sql.session.timeZone"
_NEEDED = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
}
_LEGACY = "spark.sql.legacy."
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")


class NotTranslatedError(Exception):
    """Why a query of Spark is not answered here, in words that follow "because"."""


@dataclass(frozen=True)
class UsersQuery:
    """A query in its Spark session, classic or of Spark Connect. Either its text or its DataFrame is given."""

    spark: Any
    text: str | None = None
    given: Any = None

    @classmethod
    def of(cls, query: object, spark: Any = None) -> UsersQuery:
        """Raises a `UserError` if it is not a query."""
        if isinstance(query, str):
            first = query.lstrip("( \t\r\n").split(None, 1)[:1]
            if not first or first[0].split("(")[0].upper() not in _QUERIES:
                raise UserError(
                    f"cannot accelerate the statement {query.strip()[:40]!r}: it is not a query",
                    hint="pass a SELECT, or a Spark DataFrame; spark.sql(…) runs other statements",
                )
            return cls(spark if spark is not None else _active(), text=query)
        if not isinstance(query, DataFrame):
            kind = f"{type(query).__module__}.{type(query).__qualname__}"
            raise UserError(f"cannot accelerate a {kind}", hint="pass a Spark DataFrame, or SQL text")
        return cls(query.sparkSession, text=_text_of(query), given=query)

    @property
    def is_connect(self) -> bool:
        return ".connect." in type(self.spark).__module__

    @cached_property
    def dataframe(self) -> Any:
        """Spark's own DataFrame of the query."""
        return self.given if self.given is not None else self.spark.sql(self.text)

    def check(self) -> None:
        """Raises `NotTranslatedError` if Spark's settings let a query mean something else than here."""
        zone = str(self.spark.conf.get(_ZONE))
        if zone not in _UTC:
            raise NotTranslatedError(f"{_ZONE} is {zone}, but sparkfusion has timestamps in UTC")
        for name, needed in _NEEDED.items():
            found = str(self.spark.conf.get(name, needed)).lower()
            if found != needed:
                raise NotTranslatedError(f"{name} is {found}")
        old = sorted(name for name in dict(self.spark.conf.getAll) if name.startswith(_LEGACY))
        if old:
            raise NotTranslatedError(f"{old[0]} is set")
        if self.given is not None and self.given.isStreaming:
            raise NotTranslatedError("it is a streaming DataFrame, which never ends")

    def translate(self) -> SparkQuery:
        """The DataFrame as text. Raises `NotTranslatedError` if it has none."""
        if self.is_connect:
            raise NotTranslatedError("Spark Connect does not show the plan of a DataFrame; pass the query as SQL text")
        from sparkfusion.runner.spark.catalyst.expression_text import NoTextError
        from sparkfusion.runner.spark.catalyst.translate import translate

        try:
            return translate(self.dataframe)
        except NoTextError as error:
            raise NotTranslatedError(str(error)) from error

    def check_schema(self, made: pa.Schema) -> None:
        """Raises `NotTranslatedError` if an answer with this schema would have other types than Spark's."""
        try:
            why = why_other_schema(made, self.dataframe.schema)
        except UserError as error:
            why = error.message
        if why is not None:
            raise NotTranslatedError(why)

    def shape(self, answer: Any, columns: Sequence[str]) -> Any:
        """An answer with the schema of Spark's own one."""
        functions: Any = pyspark.sql.functions
        if self.is_connect:
            from pyspark.sql.connect import functions
        return with_schema(answer, columns, self.dataframe.schema, functions)

    def explain(self) -> str:
        """Spark's plan of the query, as `DataFrame.explain` prints it."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.dataframe.explain()
        return printed.getvalue().strip()


def run_fully(dataframe: Any) -> None:
    """Compute all rows and all columns of a DataFrame. Spark throws them away."""
    dataframe.write.format("noop").mode("overwrite").save()


def _text_of(dataframe: Any) -> str | None:
    """The text of a DataFrame of Spark Connect that was made by `spark.sql`, without parameters."""
    relation = getattr(getattr(dataframe, "_plan", None), "_plan", None)
    if relation is None or not hasattr(relation, "WhichOneof") or relation.WhichOneof("rel_type") != "sql":
        return None
    sql = relation.sql
    if sql.args or sql.pos_args or sql.named_arguments or sql.pos_arguments:
        return None
    return str(sql.query)


def _active() -> Any:
    found = SparkSession.getActiveSession()
    if found is None:
        raise UserError(
            "there is no active Spark session to accelerate the query in",
            hint="make one with SparkSession.builder.getOrCreate(), or pass it: accelerate(text, spark=spark)",
        )
    return found
