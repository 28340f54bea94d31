"""Conditions and values that are queries: IN, EXISTS, quantified comparisons and scalars, correlated and not.

DataFusion 55 plans only some forms, so only those are written: subqueries in WHERE for IN and EXISTS; no NOT IN that is
also correlated; correlated scalars are aggregates over equality.
"""

from __future__ import annotations

from tests.fuzz.expressions import condition
from tests.fuzz.kinds import COMPARED, Family
from tests.fuzz.scope import Field, Pen, Source, table_source

_TEST_FAMILIES = (Family.INT, Family.TEXT, Family.DATE, Family.DECIMAL, Family.TIMESTAMP, Family.BINARY)


def predicate(pen: Pen, outer: Source) -> str:
    """A condition on the outer rows that needs a subquery."""
    inner = table_source(pen.pick(pen.tables), pen.fresh("s"))
    sql = pen.one_of(
        [
            (3, lambda: _membership(pen, outer, inner)),
            (3, lambda: _exists(pen, outer, inner)),
            (2, lambda: _compared(pen, outer, inner)),
            (1, lambda: _quantified(pen, outer, inner)),
        ]
    )
    if pen.chance(20):
        pen.note("subquery under OR")
        return f"({sql} OR {condition(pen, outer.fields)})"
    return sql


def scalar_subquery(pen: Pen, outer: Source) -> tuple[str, Family]:
    """A value for the SELECT list."""
    inner = table_source(pen.pick(pen.tables), pen.fresh("s"))
    value, family = _aggregate(pen, inner)
    pair = _pair(pen, outer, inner)
    if pair and pen.chance(60):
        pen.note("scalar subquery, correlated")
        return f"(SELECT {value} FROM {inner.sql} WHERE {pair[1].ref} = {pair[0].ref})", family
    pen.note("scalar subquery")
    return f"(SELECT {value} FROM {inner.sql}{_filter(pen, inner)})", family


def _aggregate(pen: Pen, inner: Source) -> tuple[str, Family]:
    if pen.chance(30):
        return "count(*)", Family.INT
    found = pen.pick([field for field in inner.scalars if field.family is not Family.BINARY])
    return f"{pen.pick(('max', 'min'))}({found.ref})", found.family


def _pair(pen: Pen, outer: Source, inner: Source) -> tuple[Field, Field] | None:
    """A field of each that can be compared."""
    pairs = [(o, i) for o in outer.of(*_TEST_FAMILIES) for i in inner.of(o.family)]
    return pen.pick(pairs) if pairs else None


def _filter(pen: Pen, inner: Source) -> str:
    return f" WHERE {condition(pen, inner.fields)}" if pen.chance(50) else ""


def _membership(pen: Pen, outer: Source, inner: Source) -> str:
    pair = _pair(pen, outer, inner)
    if pair is None:
        return _exists(pen, outer, inner)
    if pen.chance(40):
        pen.note("NOT IN")
        return f"{pair[0].ref} NOT IN (SELECT {pair[1].ref} FROM {inner.sql}{_filter(pen, inner)})"
    second = _pair(pen, outer, inner)
    if second and pen.chance(35):
        pen.note("IN, correlated")
        return f"{pair[0].ref} IN (SELECT {pair[1].ref} FROM {inner.sql} WHERE {second[1].ref} = {second[0].ref})"
    pen.note("IN")
    return f"{pair[0].ref} IN (SELECT {pair[1].ref} FROM {inner.sql}{_filter(pen, inner)})"


def _exists(pen: Pen, outer: Source, inner: Source) -> str:
    word = pen.pick(("EXISTS", "NOT EXISTS"))
    pair = _pair(pen, outer, inner)
    if pair is None or pen.chance(15):
        pen.note(f"{word}, uncorrelated")
        return f"{word} (SELECT 1 FROM {inner.sql}{_filter(pen, inner)})"
    pen.note(word)
    operator = pen.pick(("=", "=", "=", "<", "<>"))
    conditions = [f"{pair[1].ref} {operator} {pair[0].ref}"]
    extra = _pair(pen, outer, inner)
    if extra and pen.chance(30):
        conditions.append(f"{extra[1].ref} {pen.pick(('<', '<>', '>='))} {extra[0].ref}")
    if pen.chance(30):
        conditions.append(condition(pen, inner.fields))
    return f"{word} (SELECT 1 FROM {inner.sql} WHERE {' AND '.join(conditions)})"


def _compared(pen: Pen, outer: Source, inner: Source) -> str:
    value, family = scalar_subquery(pen, outer)
    candidates = outer.of(family) if family in COMPARED else []
    if not candidates:
        return _exists(pen, outer, inner)
    return f"{pen.pick(candidates).ref} {pen.pick(('=', '<', '>=', '<>'))} {value}"


def _quantified(pen: Pen, outer: Source, inner: Source) -> str:
    pair = _pair(pen, outer, inner)
    if pair is None:
        return _exists(pen, outer, inner)
    pen.note("ANY/ALL")
    operator, word = pen.pick(("=", "<", ">", "<>")), pen.pick(("ANY", "ALL", "SOME"))
    return f"{pair[0].ref} {operator} {word} (SELECT {pair[1].ref} FROM {inner.sql}{_filter(pen, inner)})"
