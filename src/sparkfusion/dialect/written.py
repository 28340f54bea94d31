"""A query that is written in DataFusion's dialect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.scopes import quote
from sparkfusion.dialect.spark_parser import spark_text
from sparkfusion.dialect.typed_sql import Typed


def check_limit(query: exp.Expr, *, ordered: bool) -> None:
    """Refuse a LIMIT above a sorted subquery: DataFusion drops the ORDER BY of subqueries, so it would return other
    rows than Spark."""
    limited = query.args.get("limit") is not None or query.args.get("offset") is not None
    if ordered and limited and query.args.get("order") is None:
        raise refuse(
            "LIMIT above a subquery with ORDER BY", "the order of a subquery is not kept", "write ORDER BY beside LIMIT"
        )


def limits(query: exp.Expr) -> str:
    """The text of LIMIT and OFFSET. LIMIT ALL means no limit."""
    made = ""
    for name, word in (("limit", "limit"), ("offset", "offset")):
        clause = query.args.get(name)
        if clause is None:
            continue
        value = clause.expression
        if name == "limit" and value.name.upper() == "ALL":
            continue
        if not isinstance(value, exp.Literal) or not value.name.isdigit():
            raise refuse(spark_text(clause), "it has to be a literal")
        made += f" {word} {value.name}"
    return made


@dataclass(frozen=True)
class OutputColumn:
    """A column of a query: its name for the user, its name in the text, its type."""

    name: str
    own_name: str
    type: pa.DataType


@dataclass(frozen=True)
class Written:
    """The text of a query and its columns. `ordered`: whether its rows are sorted in Spark."""

    sql: str
    columns: Sequence[OutputColumn]
    ordered: bool = False

    def only_column(self, what: str) -> Typed:
        """The only column of a subquery, as the text `"q"."name"`."""
        if len(self.columns) != 1:
            raise wrong(f"{what} has {len(self.columns)} columns, where one is expected")
        (column,) = self.columns
        return Typed(f'"q".{quote(column.own_name)}', column.type)
