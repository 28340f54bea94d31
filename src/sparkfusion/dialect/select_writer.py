"""Write one SELECT with its clauses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sparkfusion.dialect.from_clause import FromSource, FromWriter
from sparkfusion.dialect.function_calls import GENERATORS, is_aggregate
from sparkfusion.dialect.known_parts import check_parts
from sparkfusion.dialect.nested_values import access_field
from sparkfusion.dialect.refusals import refuse, wrong
from sparkfusion.dialect.scopes import EXPLODED, Scope, VisibleColumn, quote
from sparkfusion.dialect.spark_parser import spark_text
from sparkfusion.dialect.typed_sql import Typed
from sparkfusion.dialect.value_types import kind_of
from sparkfusion.dialect.windows import direction
from sparkfusion.dialect.written import OutputColumn, Written, check_limit, limits

_KNOWN = {
    "with_", "expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify", "order", "limit",
    "offset", "distinct", "hint", "distribute", "kind", "windows",
}  # fmt: skip
_REFUSED = {
    "sort": ("SORT BY", "it orders the rows of each partition only", "use ORDER BY"),
    "cluster": ("CLUSTER BY", "it orders the rows of each partition only", "use ORDER BY"),
}


@dataclass(frozen=True)
class Item:
    """A column of the result. `given`: whether the query names it; `star`: whether it comes from `*`."""

    name: str
    typed: Typed
    given: bool
    aggregates: bool = False


class SelectWriter:
    """Writes one SELECT. Hints and DISTRIBUTE BY change no answer, and are left out."""

    def __init__(self, sources: FromWriter, select: exp.Select, *, top: bool) -> None:
        self._sources = sources
        self._select = select
        self._top = top

    def write(self) -> Written:
        select = self._check()
        source = self._explode_source(self._sources.write(select))
        items = self._items(source.scope)
        names = self._own_names(items)
        columns = [OutputColumn(item.name, name, item.typed.type) for item, name in zip(items, names, strict=True)]
        shown = ", ".join(
            item.typed.sql
            if name == item.name and _is_column(item.typed.sql, name)
            else f"{item.typed.sql} as {quote(name)}"
            for item, name in zip(items, names, strict=True)
        )
        parts = [f"select {'distinct ' if select.args.get('distinct') else ''}{shown}"]
        if source.sql:
            parts.append(f"from {source.sql}")
        parts.extend(self._conditions(source.scope, items))
        if select.args.get("order") is not None:
            parts.append(f"order by {', '.join(self._order(source.scope, items, names))}")
        kept = source.ordered and not any(select.args.get(name) for name in ("group", "distinct", "having"))
        check_limit(select, ordered=kept)
        return Written(" ".join(parts) + limits(select), columns, kept or select.args.get("order") is not None)

    def _check(self) -> exp.Select:
        for name, value in self._select.args.items():
            if not value:
                continue
            if name in _REFUSED:
                raise refuse(*_REFUSED[name])
            if name not in _KNOWN:
                raise refuse(name.strip("_").upper(), "DataFusion has no equivalent")
        if (distinct := self._select.args.get("distinct")) is not None and distinct.args.get("on") is not None:
            raise refuse("DISTINCT ON", "Spark does not have it either")
        if named := self._select.args.get("windows"):
            self._inline_windows({each.name.lower(): each for each in named})
        return self._select

    def _inline_windows(self, named: dict[str, exp.Expr]) -> None:
        """Replace the names of windows by their definitions."""
        for window in self._select.find_all(exp.Window):
            alias = window.args.get("alias")
            if window.args.get("over") is None or alias is None or alias.name.lower() not in named:
                continue
            for part in ("partition_by", "order", "spec"):
                window.set(part, named[alias.name.lower()].args.get(part))
            window.set("alias", None)

    def _explode_source(self, source: FromSource) -> FromSource:
        """Treat `explode` in the select list as a lateral view."""
        found = [each for each in self._select.expressions if _generator(each) is not None]
        if not found:
            return source
        if len(found) > 1 or self._select.args.get("group") is not None:
            raise refuse("several explode in one SELECT, or one with GROUP BY", "Spark does not take it either")
        (item,) = found
        call = _generator(item)
        assert call is not None
        names = [each.name for each in item.expressions] if isinstance(item, exp.Aliases) else []
        names = [item.alias] if isinstance(item, exp.Alias) else names
        return self._sources.explode(source, call, names, EXPLODED)

    # ---- the select list

    def _items(self, scope: Scope) -> list[Item]:
        items: list[Item] = []
        for node in self._select.expressions:
            for item in self._item(scope, node):
                items.append(item)
                scope.aliases.setdefault(item.name.lower(), item.typed)
        return items

    def _item(self, scope: Scope, node: exp.Expr) -> Iterator[Item]:
        inner = node.this if isinstance(node, exp.Alias) else node
        if isinstance(node, exp.Star):
            yield from _expand_star(scope.columns(), node)
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            yield from _expand_star(self._columns_of(scope, [part.name for part in node.parts[:-1]]), node.this)
        elif _generator(node) is not None:
            yield from _expand_star(self._columns_of(scope, [EXPLODED]), exp.Star())
        else:
            typed = self._sources.writer_of(scope).write(inner)
            name = node.alias_or_name if isinstance(node, exp.Alias | exp.Column | exp.Dot) else spark_text(node)
            given = isinstance(node, exp.Alias | exp.Column | exp.Dot)
            yield Item(name, typed, given, is_aggregate(inner))

    def _columns_of(self, scope: Scope, parts: list[str]) -> list[VisibleColumn]:
        """All columns of a table for `t.*`, or all fields of a struct for `st.*`."""
        if (found := scope.columns_of(parts)) is not None:
            return found
        value = self._sources.writer_of(scope).find_column(parts)
        if kind_of(value.type) != "struct":
            raise wrong(f"table {'.'.join(parts)!r} not found in FROM")
        return [VisibleColumn(field.name, access_field(value, field.name)) for field in value.type]

    def _own_names(self, items: list[Item]) -> list[str]:
        """The names of the columns in the text, made unique. Columns of two tables may have the same name."""
        seen: dict[str, str] = {}
        names = []
        for item in items:
            name, number = item.name, 2
            if name in seen and self._top and item.given:
                if (
                    not _is_column(item.typed.sql, name)
                    or not _is_column(seen[name], name)
                    or seen[name] == item.typed.sql
                ):
                    raise refuse(f"two columns called {name!r}", "columns need different names", "use AS")
            else:
                while name in seen:
                    name, number = f"{item.name}__{number}", number + 1
            seen.setdefault(name, item.typed.sql)
            names.append(name)
        return names

    # ---- clauses

    def _conditions(self, scope: Scope, items: list[Item]) -> Iterator[str]:
        select, inner = self._select, Scope(scope.relations, scope.merged, scope.outer)
        if (where := select.args.get("where")) is not None:
            if is_aggregate(where.this):
                raise wrong("WHERE has an aggregate", "use HAVING")
            yield f"where {self._sources.writer_of(inner).row_filter(where.this).sql}"
        if (group := select.args.get("group")) is not None:
            yield f"group by {', '.join(self._group(scope, group, items))}"
        elif select.args.get("having") is not None and not any(
            is_aggregate(each) for each in (*select.expressions, select.args["having"])
        ):
            raise refuse("HAVING without GROUP BY and without aggregates", "DataFusion does not take it", "use WHERE")
        for name in ("having", "qualify"):
            if (clause := select.args.get(name)) is not None:
                yield f"{name} {self._sources.writer_of(scope).row_filter(clause.this).sql}"

    def _group(self, scope: Scope, group: exp.Expr, items: list[Item]) -> Iterator[str]:
        check_parts(group)
        if group.args.get("all"):
            keys = [item.typed.sql for item in items if not item.aggregates]
            yield from keys or ["()"]
            return
        keys = [self._key(scope, each, items) for each in group.expressions]
        with_all = [word for word in ("rollup", "cube") for each in group.args.get(word) or [] if not each.expressions]
        if with_all:
            yield f"{with_all[0]} ({', '.join(keys)})"
            return
        yield from keys
        for word in ("rollup", "cube", "grouping_sets"):
            for each in group.args.get(word) or []:
                yield self._key(scope, each, items)

    def _key(self, scope: Scope, node: exp.Expr, items: list[Item]) -> str:
        if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
            word = {exp.Rollup: "rollup", exp.Cube: "cube", exp.GroupingSets: "grouping sets"}[type(node)]
            return f"{word} ({', '.join(self._key(scope, each, items) for each in node.expressions)})"
        if isinstance(node, exp.Tuple):
            return f"({', '.join(self._key(scope, each, items) for each in node.expressions)})"
        if isinstance(node, exp.Paren):
            return f"({self._key(scope, node.this, items)})"
        if isinstance(node, exp.Literal) and node.name.isdigit():
            return _at(items, node.name, "GROUP BY").typed.sql
        return self._sources.writer_of(scope).write(node).sql

    def _order(self, scope: Scope, items: list[Item], names: list[str]) -> Iterator[str]:
        """The sort keys. A name is first looked up among the columns of the result, and an expression that is one of
        them is written as its name."""
        own = {item.typed.sql: name for item, name in zip(items, names, strict=True)}
        merged = [VisibleColumn(item.name, item.typed) for item in _first_of_name(items)]
        writer = self._sources.writer_of(Scope([], merged, Scope(scope.relations, scope.merged, scope.outer)))
        unique = {name for name in names if names.count(name) == 1}
        for each in self._select.args["order"].expressions:
            node = each.this
            if isinstance(node, exp.Var | exp.Column) and node.name.upper() == "ALL" and not scope_has(scope, "all"):
                yield from (direction(quote(name), each) for name in names)
                continue
            if isinstance(node, exp.Literal) and node.name.isdigit():
                sql = _at(items, node.name, "ORDER BY").typed.sql
            else:
                sql = writer.write(node).sql
            yield direction(quote(own[sql]) if sql in own and own[sql] in unique else sql, each)


def scope_has(scope: Scope, name: str) -> bool:
    return any(column.name.lower() == name for column in scope.columns())


def _first_of_name(items: list[Item]) -> list[Item]:
    """The items whose names can be looked up. Items that share a name are found through their tables."""
    count: dict[str, int] = {}
    for item in items:
        count[item.name.lower()] = count.get(item.name.lower(), 0) + 1
    return [item for item in items if count[item.name.lower()] == 1]


def _at(items: list[Item], number: str, clause: str) -> Item:
    if not 1 <= int(number) <= len(items):
        raise wrong(f"{clause} {number}: the query has {len(items)} columns")
    return items[int(number) - 1]


def _expand_star(columns: list[VisibleColumn], star: exp.Expr) -> Iterator[Item]:
    if star.args.get("replace") or star.args.get("rename"):
        raise refuse(spark_text(star), "Spark does not have it either")
    left_out = {each.name.lower() for each in star.args.get("except_") or []}
    for column in columns:
        if column.name.lower() not in left_out:
            yield Item(column.name, column.typed, given=True)


def _generator(node: exp.Expr) -> exp.Anonymous | None:
    inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
    return inner if isinstance(inner, exp.Anonymous) and inner.name.lower() in GENERATORS else None


def _is_column(sql: str, name: str) -> bool:
    """Whether a text is a column of a table with exactly this name."""
    return sql.endswith(f".{quote(name)}") and sql.count('"') == 4
