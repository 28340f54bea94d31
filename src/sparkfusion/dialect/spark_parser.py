"""Parse Spark's SQL with sqlglot. Functions keep their names and arguments, because the dialect translates them
itself."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from sparkfusion.dialect.refusals import refuse
from sparkfusion.errors import UserError

_WITH_SYNTAX = ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING", "TRIM", "TRY_CAST")
"""Functions whose arguments have keywords between them."""

_BEGINNINGS = ("SELECT", "WITH", "VALUES", "FROM")


class _Parser(SparkParser):
    FUNCTIONS: ClassVar[Any] = {}  # sqlglot's own functions would lose the patterns of dates
    FUNCTION_PARSERS: ClassVar[Any] = {name: SparkParser.FUNCTION_PARSERS[name] for name in _WITH_SYNTAX}
    ARRAY_CONSTRUCTORS: ClassVar = {}  # `array(1)[0]` is an item
    NO_PAREN_FUNCTION_PARSERS: ClassVar[Any] = {
        name: parse for name, parse in SparkParser.NO_PAREN_FUNCTION_PARSERS.items() if name != "TRANSFORM"
    }


class _SparkText(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = ["\\", "'", '"']  # since Spark 4, two quotes stand for one

    Parser = _Parser


@cache
def _dialect() -> _SparkText:
    return _SparkText()


def parse_query(text: str) -> exp.Expr:
    """The syntax tree of a query. Raises `UserError` for syntax errors, and for statements that are not queries."""
    word = text.lstrip("( \t\r\n").split(None, 1)[0].upper() if text.strip("( \t\r\n") else ""
    if word.rstrip("(") not in _BEGINNINGS:
        hint = "session.sql(…, dialect='datafusion') takes DataFusion's statements"
        raise refuse(f"the statement {word}", "it takes queries only", hint)
    try:
        statements = [each for each in _dialect().parse(text) if each is not None]
    except SqlglotError as error:
        raise UserError(f"this is not Spark SQL: {_first_words(error)}") from error
    if len(statements) != 1:
        raise UserError(f"one statement is expected, not {len(statements)}")
    (statement,) = statements
    if not isinstance(statement, exp.Query | exp.Values):
        raise refuse(f"the statement {word}", "it takes queries only")  # such as FROM … INSERT INTO
    return without_parentheses(statement)


def without_parentheses(node: exp.Expr) -> exp.Expr:
    """The node inside parentheses, unless they have clauses of their own, such as a LIMIT."""
    while isinstance(node, exp.Paren | exp.Subquery) and not any(v for k, v in node.args.items() if k != "this"):
        node = node.this
    return node


def spark_text(node: exp.Expr) -> str:
    """A part of the query as Spark SQL, for names of columns and for errors."""
    return node.sql(dialect=_dialect(), normalize_functions="lower")


def _first_words(error: SqlglotError) -> str:
    details = getattr(error, "errors", None)
    if details:
        first = details[0]
        return f"{first['description']} at line {first['line']}, column {first['col']}"
    return str(error).split("\n", 1)[0]
