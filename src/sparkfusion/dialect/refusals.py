"""Errors for queries that the dialect cannot answer as Spark does."""

from __future__ import annotations

from sparkfusion.errors import UserError

_LET_SPARK = "if the session runs on Spark, let Spark run this part: session.register_spark(name, spark.sql(…))"


class NotInDialectError(UserError):
    """A part of a query that has no equivalent in DataFusion, or only one with another meaning."""


def refuse(what: str, why: str, hint: str | None = None) -> NotInDialectError:
    """The error for a construct or function, named as the user wrote it."""
    return NotInDialectError(f"{what} is not available in the spark dialect: {why}", hint=hint or _LET_SPARK)


def wrong(message: str, hint: str | None = None) -> UserError:
    """The error for a query that Spark would not accept either."""
    return UserError(message, hint=hint)
