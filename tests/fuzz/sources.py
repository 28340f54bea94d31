"""What stands after FROM: tables, joins of every type, subqueries, values and series."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.expressions import LITERALS, SQL_TYPES, condition, expression
from tests.fuzz.kinds import Family
from tests.fuzz.scope import Field, Pen, Query, Source, query_source, table_source

MAX_PAIRS = 25_000
"""No join of more pairs of rows than this."""

_KEPT_SIDE = {"LEFT SEMI": 0, "LEFT ANTI": 0, "RIGHT SEMI": 1, "RIGHT ANTI": 1}
_JOINS = ("INNER", "LEFT", "RIGHT", "FULL", *_KEPT_SIDE)
_KEYS = tuple(family for family in Family if family is not Family.BOOL)

QueryWriter = Callable[[Pen, int], Query]


def source(pen: Pen, depth: int, write_query: QueryWriter) -> Source:
    """Any source; `write_query` makes the subqueries in it."""
    if depth <= 0:
        return _primary(pen, 0, write_query)
    return pen.one_of(
        [(4, lambda: _primary(pen, depth, write_query)), (5, lambda: _join(pen, depth, write_query))],
    )


def _primary(pen: Pen, depth: int, write_query: QueryWriter) -> Source:
    writers: list[tuple[int, Callable[[], Source]]] = [
        (12, lambda: table_source(pen.pick(pen.tables), pen.fresh("a"))),
        (1, lambda: _values(pen)),
    ]
    if depth > 0:
        writers.append((5, lambda: _derived(pen, depth, write_query)))
        writers.append((1, lambda: _series(pen)))
    return pen.one_of(writers)


def _derived(pen: Pen, depth: int, write_query: QueryWriter) -> Source:
    pen.note("derived table")
    return query_source(write_query(pen, depth - 1), pen.fresh("q"))


def _values(pen: Pen) -> Source:
    pen.note("values")
    alias, families = pen.fresh("v"), [Family.INT, *pen.some((Family.TEXT, Family.DATE, Family.FLOAT), 0, 2)]
    rows = ["(" + ", ".join(_value(pen, family) for family in families) + ")" for _ in range(pen.number(1, 4))]
    names = [f"x{number}" for number in range(len(families))]
    fields = tuple(Field(f"{alias}.{name}", family) for name, family in zip(names, families, strict=True))
    sql = f"(VALUES {', '.join(rows)}) AS {alias}({', '.join(names)})"
    return Source(sql, fields, tuple(found.ref for found in fields), len(rows))


def _value(pen: Pen, family: Family) -> str:
    return f"CAST(NULL AS {SQL_TYPES[family]})" if pen.chance(15) else pen.pick(LITERALS[family])


def _series(pen: Pen) -> Source:
    pen.note("generate_series")
    alias, rows = pen.fresh("g"), pen.number(0, 20)
    return Source(
        f"generate_series(1, {rows}) AS {alias}(n)", (Field(f"{alias}.n", Family.INT),), (f"{alias}.n",), rows
    )


def _join(pen: Pen, depth: int, write_query: QueryWriter) -> Source:
    left = source(pen, depth - 1, write_query)
    right = _primary(pen, depth, write_query)
    if left.rows * right.rows > MAX_PAIRS:
        return left
    if pen.chance(10):
        pen.note("cross join")
        return _joined("CROSS", left, right, "")
    on = _on(pen, left, right)
    kind = pen.pick(_JOINS)
    pen.note(f"{kind.lower()} join")
    return _joined(kind, left, right, f" ON {on}")


def _joined(kind: str, left: Source, right: Source, on: str) -> Source:
    sql = f"{left.sql} {kind} JOIN {right.sql}{on}"
    rows = left.rows * right.rows + left.rows + right.rows
    if kind in _KEPT_SIDE:
        kept = (left, right)[_KEPT_SIDE[kind]]
        return Source(sql, kept.fields, kept.key, kept.rows)
    return Source(sql, left.fields + right.fields, left.key + right.key, rows)


def _on(pen: Pen, left: Source, right: Source) -> str:
    pairs = [(a, b) for a in left.of(*_KEYS) for b in right.of(a.family)]
    comparable = [(a, b) for a, b in pairs if a.family in SQL_TYPES]
    if comparable and pen.chance(15):
        pen.note("inequality join")
        a, b = pen.pick(comparable)
        return f"{a.ref} {pen.pick(('<', '>=', '<>', '>'))} {b.ref}"
    if not pairs:
        pen.note("join on a condition")
        return condition(pen, left.fields + right.fields)
    equal = pen.some(pairs, 1, 2)
    operator = "="
    if pen.chance(10):
        pen.note("null-safe join")
        operator = "IS NOT DISTINCT FROM"
    conditions = [f"({a.ref} {operator} {b.ref})" if operator != "=" else f"{a.ref} = {b.ref}" for a, b in equal]
    if pen.chance(15) and equal[0][0].family in (Family.INT, Family.TEXT, Family.DATE):
        pen.note("join on expressions")
        a, b = equal[0]
        conditions[0] = f"{expression(pen, [a], a.family, 2)} = {b.ref}"
    if comparable and pen.chance(30):
        pen.note("join filter")
        a, b = pen.pick(comparable)
        conditions.append(
            pen.pick((f"{a.ref} <= {b.ref}", f"{a.ref} <> {b.ref}", condition(pen, left.fields + right.fields)))
        )
    return " AND ".join(conditions)
