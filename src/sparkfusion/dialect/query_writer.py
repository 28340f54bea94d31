"""Write a whole query: SELECT with its clauses, WITH, and UNION, INTERSECT and EXCEPT."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import count

import pyarrow as pa
from sqlglot import exp

from sparkfusion.dialect.conversions import coerce_all
from sparkfusion.dialect.expressions import ExpressionWriter
from sparkfusion.dialect.from_clause import FindTable, FromWriter
from sparkfusion.dialect.function_calls import CallWriter
from sparkfusion.dialect.known_parts import check_parts
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.scopes import Scope, VisibleColumn, quote
from sparkfusion.dialect.select_writer import SelectWriter
from sparkfusion.dialect.spark_parser import parse_query, spark_text, without_parentheses
from sparkfusion.dialect.typed_sql import Typed, TypeProbe
from sparkfusion.dialect.windows import direction
from sparkfusion.dialect.written import OutputColumn, Written, check_limit, limits

_SETS = {exp.Union: "union", exp.Intersect: "intersect", exp.Except: "except"}


class QueryWriter:
    """Writes queries of Spark for one session.

    Args:
        find_table: finds the session's tables.
        probe: finds the types of calls.
        own: the names of the user's functions.
        values: the values of parameters.
    """

    def __init__(
        self,
        find_table: FindTable,
        probe: TypeProbe,
        own: Collection[str] = (),
        values: Mapping[str, object] | None = None,
    ) -> None:
        self.values: Mapping[str, object] = values or {}
        self._find_table = find_table
        self._probe = probe
        self._calls = CallWriter(own)
        self._views: Mapping[str, Written] = {}
        self._names = count(1)

    def write(self, text: str) -> str:
        """The text for DataFusion."""
        return self.write_query(parse_query(text), None, top=True).sql

    def write_query(self, query: exp.Expr, outer: Scope | None, *, top: bool = False) -> Written:
        before = self._views
        try:
            prefix = self._with(query)
            if not isinstance(query, exp.Select):
                check_parts(query)
            if isinstance(query, exp.SetOperation):
                made = self._set_operation(query, outer)
            elif isinstance(query, exp.Select):
                made = SelectWriter(self.from_writer(outer), query, top=top).write()
            elif isinstance(query, exp.Values):
                made = self.from_writer(outer).inline_table(query)
            elif isinstance(query, exp.Subquery):
                made = self._sort_and_limit(query, self.write_query(query.this, outer))
            else:
                raise refuse(spark_text(query), "DataFusion has no equivalent")
        finally:
            self._views = before
        return replace(made, sql=f"{prefix}{made.sql}")

    def write_call(self, writer: ExpressionWriter, node: exp.Expr) -> Typed:
        return self._calls.write(writer, node)

    def expressions(self, scope: Scope) -> ExpressionWriter:
        return ExpressionWriter(scope, self._probe, self)

    def from_writer(self, outer: Scope | None) -> FromWriter:
        return FromWriter(self._find_table, self._views, self.write_query, self.expressions, outer, self._names)

    def _with(self, query: exp.Expr) -> str:
        clause = query.args.get("with_")
        if clause is None:
            return ""
        if clause.args.get("recursive"):
            raise refuse("WITH RECURSIVE", "Spark limits it in its own way")
        texts = []
        for each in clause.expressions:
            check_parts(each)
            inner = self.write_query(each.this, None)
            columns = inner.columns
            if names := [name.name for name in each.args["alias"].columns]:
                if len(names) != len(columns):
                    raise wrong(f"{each.alias} has {len(columns)} columns, not {len(names)}")
                columns = [OutputColumn(name, old.own_name, old.type) for name, old in zip(names, columns, strict=True)]
            own_name = f"__w{next(self._names)}"  # in DataFusion, an inner query cannot use the name of an outer one
            texts.append(f"{quote(own_name)} as ({inner.sql})")
            self._views = {**self._views, each.alias.lower(): Written(quote(own_name), columns, inner.ordered)}
        return f"with {', '.join(texts)} "

    def _set_operation(self, query: exp.SetOperation, outer: Scope | None) -> Written:
        word = _SETS[type(query)]
        if query.args.get("by_name"):
            raise refuse("UNION BY NAME", "it is not implemented")
        distinct = query.args.get("distinct")
        if not distinct and word != "union":
            raise refuse(f"{word.upper()} ALL", "DataFusion counts equal rows in another way")
        left, right = (self.write_query(without_parentheses(each), outer) for each in (query.this, query.expression))
        if len(left.columns) != len(right.columns):
            raise wrong(f"{word.upper()} of {len(left.columns)} and {len(right.columns)} columns")
        kinds = [_common(*pair, word) for pair in zip(left.columns, right.columns, strict=True)]
        sides = f"{_side(left, kinds)} {word}{'' if distinct else ' all'} {_side(right, kinds)}"
        columns = [
            OutputColumn(each.name, f"c{n}", kind)
            for n, (each, kind) in enumerate(zip(left.columns, kinds, strict=True))
        ]
        listed = ", ".join(f"{quote(f'c{n}')} as {quote(name)}" for n, name in enumerate(_unique(columns)))
        made = Written(
            f'select {listed} from ({sides}) as "u"',
            [OutputColumn(each.name, name, each.type) for each, name in zip(columns, _unique(columns), strict=True)],
        )
        return self._sort_and_limit(query, made)

    def _sort_and_limit(self, query: exp.Expr, made: Written) -> Written:
        """Add ORDER BY, LIMIT and OFFSET of a query that is not a SELECT. They can name only its output columns."""
        order = query.args.get("order")
        if order is None and query.args.get("limit") is None and query.args.get("offset") is None:
            return made
        check_limit(query, ordered=made.ordered)
        visible = [VisibleColumn(each.name, Typed(f'"o".{quote(each.own_name)}', each.type)) for each in made.columns]
        writer = self.expressions(Scope(merged=visible))
        keys = []
        for each in order.expressions if order is not None else []:
            at = each.this.name if isinstance(each.this, exp.Literal) else ""
            sql = visible[int(at) - 1].typed.sql if at.isdigit() else writer.write(each.this).sql
            keys.append(direction(sql, each))
        by = f" order by {', '.join(keys)}" if keys else ""
        return Written(f'select * from ({made.sql}) as "o"{by}{limits(query)}', made.columns, ordered=bool(keys))


def _common(left: OutputColumn, right: OutputColumn, word: str) -> pa.DataType:
    return coerce_all([Typed("l", left.type), Typed("r", right.type)], word.upper())[0].type


def _side(written: Written, kinds: list[pa.DataType]) -> str:
    """One side of a set operation, with its columns in the common types of both sides."""
    columns = []
    for n, (column, kind) in enumerate(zip(written.columns, kinds, strict=True)):
        typed, _ = coerce_all(
            [Typed(f'"s".{quote(column.own_name)}', column.type), Typed("t", kind)], "a set operation"
        )
        columns.append(f"{typed.sql} as {quote(f'c{n}')}")
    return f'(select {", ".join(columns)} from ({written.sql}) as "s")'


def _unique(columns: list[OutputColumn]) -> list[str]:
    seen: dict[str, int] = {}
    names = []
    for each in columns:
        seen[each.name] = seen.get(each.name, 0) + 1
        names.append(each.name if seen[each.name] == 1 else f"{each.name}__{seen[each.name]}")
    return names
