"""SELECT lists, WHERE, DISTINCT, UNNEST, ORDER BY and LIMIT."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.expressions import condition, expression, leaf
from tests.fuzz.kinds import NESTED, Family
from tests.fuzz.scope import Field, Pen, Query, Source
from tests.fuzz.subqueries import predicate, scalar_subquery

Item = tuple[str, Field]
"""An expression, and the column it becomes."""


def item(pen: Pen, sql: str, family: Family, *, unsigned: bool = False) -> Item:
    return sql, Field(pen.fresh("c"), family, unsigned)


def select_list(items: Sequence[Item]) -> str:
    return ", ".join(f"{sql} AS {column.ref}" for sql, column in items)


def output_key(items: Sequence[Item], key: Sequence[str]) -> tuple[str, ...]:
    """The key in terms of output columns: the source's key where all of it is selected, else everything."""
    names = {sql: column.ref for sql, column in items}
    if all(ref in names for ref in key):
        return tuple(names[ref] for ref in key)
    return tuple(column.ref for _, column in items)


def items_of(pen: Pen, source: Source, families: Sequence[Family] | None = None) -> list[Item]:
    """What a plain SELECT returns: columns and expressions, of the given families if a set operation needs them."""
    if families is None:
        picked = pen.some(source.fields, 1, 5)
        columns = [item(pen, found.ref, found.family, unsigned=found.unsigned) for found in picked]
        families = [pen.pick(tuple(Family))] if pen.chance(50) else []
        return columns + [item(pen, expression(pen, source.fields, family, 2), family) for family in families]
    return [
        item(
            pen, expression(pen, source.fields, family) if pen.chance(30) else leaf(pen, source.fields, family), family
        )
        for family in families
    ]


def where(pen: Pen, source: Source, depth: int, percent: int = 60) -> str:
    """A WHERE clause, or nothing."""
    if not pen.chance(percent):
        return ""
    conditions = [condition(pen, source.fields)]
    if depth > 0 and pen.chance(60):
        conditions[0] = predicate(pen, source)
        if pen.chance(30):
            conditions.append(condition(pen, source.fields))
    glue = pen.pick((" AND ", " AND ", " OR "))
    return " WHERE " + glue.join(conditions)


def plain(
    pen: Pen, source: Source, depth: int, families: Sequence[Family] | None = None, *, distinct: bool = False
) -> Query:
    """A SELECT without aggregates, of the given families of columns or of any."""
    items = items_of(pen, source, families)
    if families is None and depth > 0 and pen.chance(20):
        items.append(item(pen, *scalar_subquery(pen, source)))
    distinct = distinct or pen.chance(20)
    if distinct:
        pen.note("distinct")
    sql = f"SELECT {'DISTINCT ' if distinct else ''}{select_list(items)} FROM {source.sql}{where(pen, source, depth)}"
    return Query(sql, tuple(column for _, column in items), output_key(items, source.key), source.rows)


def distinct_on(pen: Pen, source: Source, depth: int) -> Query:
    """DISTINCT ON with a total order inside each group."""
    pen.note("distinct on")
    keys = pen.some(source.scalars or source.fields, 1, 2)
    rest = [found for found in source.total if found not in keys]
    shown = keys + [found for found in pen.some(source.fields, 0, 3) if found not in keys]
    items = [item(pen, found.ref, found.family, unsigned=found.unsigned) for found in shown]
    on = ", ".join(key.ref for key in keys)
    order = ", ".join([on, pen.order(rest)] if rest else [on])
    sql = (
        f"SELECT DISTINCT ON ({on}) {select_list(items)} FROM {source.sql}{where(pen, source, depth)} ORDER BY {order}"
    )
    key = output_key(items, source.key)
    return Query(sql, tuple(column for _, column in items), key, source.rows, closed=True)


def unnested(pen: Pen, source: Source, depth: int) -> Query:
    """A row for each element of a list; where there is no list, one is made."""
    pen.note("unnest")
    lists = source.of(Family.INT_LIST, Family.TEXT_LIST)
    items = [item(pen, found.ref, found.family) for found in pen.some(source.fields, 1, 3)]
    if lists and not pen.chance(20):
        chosen = pen.pick(lists)
        sql, family = chosen.ref, Family.INT if chosen.family is Family.INT_LIST else Family.TEXT
    else:
        sql, family = f"make_array({leaf(pen, source.fields, Family.INT)}, 7, NULL)", Family.INT
    items.append(item(pen, f"unnest({sql})", family))
    text = f"SELECT {select_list(items)} FROM {source.sql}{where(pen, source, depth)}"
    return Query(text, tuple(c for _, c in items), tuple(c.ref for _, c in items), 4 * source.rows + 4)


def limited(pen: Pen, query: Query) -> Query:
    """The first rows of a total order."""
    pen.note("limit")
    sql, terms = query.sql, [column for column in query.columns if column.ref in query.key]
    if query.closed or (pen.signed_zeros and any(term.family is Family.FLOAT for term in terms)):
        sql = f"SELECT * FROM ({sql}) AS {pen.fresh('z')}"
    leading = [column for column in pen.some(query.columns, 0, 2) if column not in terms]
    count = pen.pick((3, 1, 5, 10, 20, 100, 3, 5, 10, 20, 0))
    sql = f"{sql} ORDER BY {pen.order([*leading, *terms])} LIMIT {count}"
    if pen.chance(30):
        pen.note("offset")
        sql += f" OFFSET {pen.number(0, 4)}"
    return Query(sql, query.columns, query.key, min(count, query.rows), closed=True)


def ordered(pen: Pen, query: Query) -> Query:
    """An ORDER BY with ties, of everything: the order is declared, the rows are all there."""
    pen.note("order by")
    terms = [column for column in query.columns if column.family not in NESTED and column.family is not Family.FLOAT]
    if query.closed or not terms:
        return query
    sql = f"{query.sql} ORDER BY {pen.order(pen.some(terms, 1, 2))}"
    return Query(sql, query.columns, query.key, query.rows, closed=True)
