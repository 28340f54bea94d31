"""FROM: tables, subqueries, inline tables, joins and lateral views, and the columns that they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa
from sqlglot import exp

from sparkfusion.dialect import typed_operators
from sparkfusion.dialect.conversions import coerce_all
from sparkfusion.dialect.expressions import ExpressionWriter
from sparkfusion.dialect.function_calls import GENERATORS
from sparkfusion.dialect.known_parts import check_parts
from sparkfusion.dialect.nested_values import access_field, as_list
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.scopes import FromRelation, Scope, VisibleColumn, quote, relation_of
from sparkfusion.dialect.spark_parser import spark_text
from sparkfusion.dialect.typed_sql import Typed
from sparkfusion.dialect.written import OutputColumn, Written

_FILE_FORMATS = ("parquet", "orc", "avro", "csv", "json", "text", "binaryfile", "delta")
FindTable = Callable[[Sequence[str]], "tuple[str, pa.Schema]"]
"""A table of the session: its name in SQL, and its columns. Raises `UserError` if there is none.

The last part of the name may end in a version, such as `orders VERSION AS OF 3`.
"""

_KEPT = (
    "joins", "alias", "laterals", "this", "db", "catalog", "expressions", "column_names", "with_", "ordinality",
    "version",
)  # fmt: skip
_KINDS = {
    "": "join", "INNER": "join", "LEFT": "left join", "RIGHT": "right join", "FULL": "full join", "CROSS": "cross join",
    "LEFT SEMI": "left semi join", "LEFT ANTI": "left anti join", "SEMI": "left semi join", "ANTI": "left anti join",
}  # fmt: skip


@dataclass
class FromSource:
    """The text of FROM so far, and its columns. `ordered`: whether it is a subquery whose rows are sorted in Spark."""

    sql: str
    scope: Scope
    ordered: bool = False


@dataclass
class FromWriter:
    """Writes the FROM of one query.

    Attributes:
        views: the queries of WITH that are visible here, by their names in lower case; their text is their name.
        names: numbers for generated names.
    """

    find_table: FindTable
    views: Mapping[str, Written]
    write_query: Callable[[exp.Expr, Scope | None], Written]
    writer_of: Callable[[Scope], ExpressionWriter]
    outer: Scope | None = None
    names: count[int] = field(default_factory=lambda: count(1))

    def write(self, select: exp.Select) -> FromSource:
        start = select.args.get("from_")
        if start is None:
            source = FromSource("", Scope(outer=self.outer))
        else:
            source = self._relation(start.this)
            for join in [*start.this.args.get("joins", []), *select.args.get("joins", [])]:
                source = self._join(source, join)
        for lateral in select.args.get("laterals", []):
            source = self._lateral(source, lateral)
        return source

    # ---- one relation

    def _relation(self, node: exp.Expr) -> FromSource:
        for name, value in node.args.items():
            if value and name not in _KEPT:
                raise refuse(f"{name.strip('_').upper()} in FROM ({spark_text(node)})", "DataFusion has no equivalent")
        if isinstance(node, exp.Table):
            made = self._table(node)
        elif isinstance(node, exp.Values):
            made = self._values(node)
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
            made = self._derived_table(node, self.write_query(node.this, None))
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            made = self._relation(node.this)
            for join in node.this.args.get("joins", []):
                made = self._join(made, join)
        else:
            raise refuse(f"{spark_text(node)} in FROM", "DataFusion has no equivalent")
        for lateral in node.args.get("laterals", []):
            made = self._lateral(made, lateral)
        return made

    def _table(self, node: exp.Table) -> FromSource:
        if not isinstance(node.this, exp.Identifier):
            raise refuse(f"{spark_text(node)} in FROM", "DataFusion has no equivalent of table functions")
        names = [part.name for part in node.parts]
        if len(names) == 2 and names[0].lower() in _FILE_FORMATS and "/" in names[1]:
            hint = "register the files as a table, or let Spark read them: spark.read.parquet(path)"
            raise refuse(f"{spark_text(node)} in FROM", "files cannot be read by their path", hint)
        alias = node.alias or names[-1]
        view = self.views.get(names[0].lower()) if len(names) == 1 else None
        if view is not None and node.args.get("version"):
            raise wrong(f"{names[0]} is a query of WITH, which has no versions")
        if view is not None:
            columns = [(each.name, each.own_name, each.type) for each in view.columns]
            sql = view.sql
        else:
            sql, schema = self.find_table([*names[:-1], names[-1] + _version(node)])
            columns = [(each.name, each.name, each.type) for each in schema]
        columns = _rename_columns(node, columns)
        parts = (alias,) if node.alias else tuple(names)
        ordered = view is not None and view.ordered
        return FromSource(f"{sql} as {quote(alias)}", self._scope(relation_of(alias, parts, columns)), ordered)

    def _derived_table(self, node: exp.Expr, inner: Written) -> FromSource:
        alias = node.alias or f"__q{next(self.names)}"
        columns = _rename_columns(node, [(each.name, each.own_name, each.type) for each in inner.columns])
        scope = self._scope(relation_of(alias, (alias,), columns))
        return FromSource(f"({inner.sql}) as {quote(alias)}", scope, inner.ordered)

    def _values(self, node: exp.Values) -> FromSource:
        return self._derived_table(node, self.inline_table(node))

    def inline_table(self, node: exp.Values) -> Written:
        """`VALUES (1, 'a'), (2, 'b')`: the columns are called col1, col2 and so on."""
        writer = self.writer_of(Scope())
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
        if len({len(row) for row in rows}) != 1:
            raise wrong("the rows of VALUES have different lengths")
        columns = [coerce_all([writer.write(row[at]) for row in rows], "VALUES") for at in range(len(rows[0]))]
        texts = ", ".join(f"({', '.join(column[at].sql for column in columns)})" for at in range(len(rows)))
        names = [f"col{at}" for at in range(1, len(columns) + 1)]
        listed = ", ".join(f"{quote(f'column{at}')} as {quote(name)}" for at, name in enumerate(names, start=1))
        made = [OutputColumn(name, name, column[0].type) for name, column in zip(names, columns, strict=True)]
        return Written(f"select {listed} from (values {texts})", made)

    # ---- joins

    def _join(self, left: FromSource, join: exp.Join) -> FromSource:
        check_parts(join)
        right = self._relation(join.this)
        words = [str(join.args.get(name) or "").upper() for name in ("method", "side", "kind")]
        natural = "NATURAL" in words
        word = " ".join(each for each in words[1:] if each and each != "OUTER")
        if word not in _KINDS or words[0] not in ("", "NATURAL"):
            raise refuse(f"{' '.join(words).strip()} JOIN", "DataFusion has no equivalent")
        kind = _KINDS[word]
        shared = [each.name for each in join.args.get("using") or []]
        if natural:
            known = {column.name.lower() for column in right.scope.columns()}
            shared = [column.name for column in left.scope.columns() if column.name.lower() in known]
        scope = Scope([*left.scope.relations, *right.scope.relations], list(left.scope.merged), self.outer)
        if shared:
            pairs = [(left.scope.find([name])[0], right.scope.find([name])[0]) for name in shared]
            condition = " and ".join(typed_operators.compare(*pair, "=").sql for pair in pairs)
            scope.merged = _merge(kind, shared, pairs, left.scope.merged)
        elif join.args.get("on") is not None:
            condition = self.writer_of(scope).row_filter(join.args["on"]).sql
        else:
            kind, condition = ("cross join", "") if kind in ("join", "cross join") else (kind, "true")
        if kind.endswith(("semi join", "anti join")):
            scope = left.scope
        on = f" on {condition}" if condition else ""
        return FromSource(f"{left.sql} {kind} {right.sql}{on}", scope)

    # ---- rows of arrays

    def _lateral(self, source: FromSource, lateral: exp.Expr) -> FromSource:
        check_parts(lateral)
        if not isinstance(lateral, exp.Lateral) or not lateral.args.get("view"):
            raise refuse(spark_text(lateral), "only LATERAL VIEW is supported")
        alias = lateral.args.get("alias")
        names = [each.name for each in alias.columns] if alias is not None else []
        table = alias.name if alias is not None else ""
        return self.explode(source, lateral.this, names, table, outer=bool(lateral.args.get("outer")))

    def explode(
        self, source: FromSource, call: exp.Expr, names: Sequence[str], table: str, *, outer: bool = False
    ) -> FromSource:
        """Make one row for each item of an array or map, with the other columns of its row.

        FROM so far becomes a subquery with numbered columns.
        """
        name = call.name.lower() if isinstance(call, exp.Anonymous) else spark_text(call)
        if name not in GENERATORS or len(call.expressions) != 1:
            raise refuse(f"{name} as a source of rows", "only explode and posexplode are supported")
        items, is_map = as_list(self.writer_of(source.scope).write(call.expressions[0]), name)
        outer = outer or name.endswith("_outer")
        made = f"__e{next(self.names)}"
        kept, moved = _number_columns(source.scope, made)
        unnested = [f'unnest({_or_one(items.sql, items.sql, outer=outer)}) as "item"']
        if name.startswith("pos"):
            numbers = f"range(0, cast(cardinality({items.sql}) as bigint))"
            unnested.append(f'unnest({_or_one(items.sql, numbers, outer=outer)}) as "position"')
        sql = f"(select {', '.join([*kept, *unnested])} from {source.sql or '(values (1))'}) as {quote(made)}"
        item = Typed(f'{quote(made)}."item"', items.type.value_type)
        columns = [access_field(item, "key"), access_field(item, "value")] if is_map else [item]
        defaults = ["key", "value"] if is_map else ["col"]
        if name.startswith("pos"):
            columns.insert(0, Typed(f'cast({quote(made)}."position" as int)', pa.int32()))
            defaults.insert(0, "pos")
        if names and len(names) != len(columns):
            raise wrong(f"{name} gives {len(columns)} columns, not {len(names)}")
        visible = tuple(map(VisibleColumn, names or defaults, columns))
        moved.relations.append(FromRelation((table or made,), visible))
        moved.outer = self.outer
        return FromSource(sql, moved, source.ordered)

    def _scope(self, relation: FromRelation) -> Scope:
        return Scope([relation], outer=self.outer)


def _version(node: exp.Table) -> str:
    """The AS OF clause of a table; empty if there is none."""
    version = node.args.get("version")
    if version is None:
        return ""
    kind, value = version.this, version.expression
    if version.args.get("kind") != "AS OF" or not isinstance(value, exp.Literal) or set("'\\") & set(value.name):
        raise refuse(f"{spark_text(node)} in FROM", "a version must be a number or a plain string")
    if kind == "TIMESTAMP" and not value.is_string:
        raise refuse(f"{spark_text(node)} in FROM", "a time must be a string")
    return f" {kind} AS OF {value.name}"


def _rename_columns(node: exp.Expr, columns: list[tuple[str, str, pa.DataType]]) -> list[tuple[str, str, pa.DataType]]:
    """The columns with the names of an alias such as `t(a, b)`."""
    alias = node.args.get("alias")
    names = [each.name for each in alias.columns] if alias is not None else []
    if not names:
        return columns
    if len(names) != len(columns):
        raise wrong(f"{node.alias} has {len(columns)} columns, not {len(names)}")
    return [(name, own, kind) for name, (_, own, kind) in zip(names, columns, strict=True)]


def _merge(
    kind: str, names: Sequence[str], pairs: Sequence[tuple[Typed, Typed]], before: Sequence[VisibleColumn]
) -> list[VisibleColumn]:
    """The columns of USING: those of the side that keeps all rows, or the first that is not NULL in a full join."""
    made = []
    for name, pair in zip(names, pairs, strict=True):
        left, right = coerce_all(list(pair), "USING")
        typed = {"right join": pair[1], "full join": Typed(f"coalesce({left.sql}, {right.sql})", left.type)}
        made.append(VisibleColumn(name, typed.get(kind, pair[0])))
    known = {name.lower() for name in names}
    return [*made, *(each for each in before if each.name.lower() not in known)]


def _number_columns(scope: Scope, alias: str) -> tuple[list[str], Scope]:
    """The columns of a scope with numbers as names, and the scope of the subquery that has them."""
    kept: list[str] = []

    def move(column: VisibleColumn) -> VisibleColumn:
        own = f"c{len(kept)}"
        kept.append(f"{column.typed.sql} as {quote(own)}")
        return VisibleColumn(column.name, Typed(f"{quote(alias)}.{quote(own)}", column.typed.type))

    relations = [FromRelation(each.names, tuple(map(move, each.columns))) for each in scope.relations]
    return kept, Scope(relations, list(map(move, scope.merged)))


def _or_one(array: str, items: str, *, outer: bool) -> str:
    """The items of an array. With `outer`, an empty array becomes one NULL, so that the row stays."""
    return f"case when cardinality({array}) > 0 then {items} else make_array(null) end" if outer else items
