"""GROUP BY in all its forms. Aggregates that depend on order are given a total one."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.expressions import LITERALS, condition, expression
from tests.fuzz.kinds import NUMBERS, Family
from tests.fuzz.scope import Field, Pen, Query, Source
from tests.fuzz.selects import Item, item, select_list, where

_ORDERED = (
    Family.INT,
    Family.FLOAT,
    Family.DECIMAL,
    Family.TEXT,
    Family.DATE,
    Family.TIMESTAMP,
    Family.INSTANT,
    Family.BOOL,
)


def aggregated(pen: Pen, source: Source, depth: int) -> Query:
    """GROUP BY columns or expressions, with any number of aggregates and maybe HAVING."""
    keys = _keys(pen, source)
    aggregates = [_aggregate(pen, source) for _ in range(pen.number(0 if keys else 1, 3))]
    pen.note("group by" if keys else "aggregate of everything")
    items = [*keys, *aggregates]
    group = f" GROUP BY {', '.join(sql for sql, _ in keys)}" if keys else ""
    sql = f"SELECT {select_list(items)} FROM {source.sql}{where(pen, source, depth)}{group}{_having(pen, aggregates)}"
    names = tuple(column.ref for _, column in (keys or items))
    return Query(sql, tuple(column for _, column in items), names, source.rows if keys else 1)


def grouping_sets(pen: Pen, source: Source, depth: int) -> Query:
    """ROLLUP, CUBE and GROUPING SETS over columns, with grouping() to tell the sets apart."""
    columns = pen.some(source.scalars, 2, 3)
    keys = [item(pen, found.ref, found.family, unsigned=found.unsigned) for found in columns]
    refs = [found.ref for found in columns]
    sets = pen.one_of([(1, lambda: _rollup(pen, refs)), (1, lambda: _cube(pen, refs)), (2, lambda: _sets(pen, refs))])
    extra = [_aggregate(pen, source) for _ in range(pen.number(0, 2))]
    if pen.chance(50):
        extra.append(item(pen, f"grouping({pen.pick(refs)})", Family.INT))
    items = [*keys, item(pen, "count(*)", Family.INT), *extra]
    sql = f"SELECT {select_list(items)} FROM {source.sql}{where(pen, source, depth)} GROUP BY {sets}"
    out = tuple(column for _, column in items)
    return Query(sql, out, tuple(column.ref for column in out), 4 * source.rows + 4)


def _rollup(pen: Pen, refs: list[str]) -> str:
    pen.note("rollup")
    return f"ROLLUP ({', '.join(refs)})"


def _cube(pen: Pen, refs: list[str]) -> str:
    pen.note("cube")
    return f"CUBE ({', '.join(refs)})"


def _sets(pen: Pen, refs: list[str]) -> str:
    pen.note("grouping sets")
    chosen = [refs, *([ref] for ref in pen.some(refs, 1, len(refs)))]
    if pen.chance(50):
        chosen.append([])
    return f"GROUPING SETS ({', '.join('(' + ', '.join(one) + ')' for one in chosen)})"


def _keys(pen: Pen, source: Source) -> list[Item]:
    fields = pen.some(source.fields, 0, 3)
    keys = [item(pen, found.ref, found.family, unsigned=found.unsigned) for found in fields]
    if keys and pen.chance(20):
        pen.note("group by expression")
        family = pen.pick((Family.INT, Family.TEXT, Family.DATE))
        sql = expression(pen, source.fields, family, 2)
        if "." in sql:  # a constant is no key
            keys[-1] = item(pen, sql, family)
    return list({sql: (sql, column) for sql, column in keys}.values())


def _having(pen: Pen, aggregates: list[Item]) -> str:
    usable = [(sql, column) for sql, column in aggregates if column.family in (Family.INT, Family.TEXT)]
    if not usable or not pen.chance(25):
        return ""
    pen.note("having")
    sql, column = pen.pick(usable)
    return f" HAVING {sql} {pen.pick(('>', '<>', '<='))} {pen.pick(LITERALS[column.family])}"


def _aggregate(pen: Pen, source: Source) -> Item:
    sql, family = _call(pen, source)
    if pen.chance(20):
        pen.note("aggregate filter")
        sql += f" FILTER (WHERE {condition(pen, source.fields)})"
    return item(pen, sql, family)


def _call(pen: Pen, source: Source) -> tuple[str, Family]:
    numbers, ordered, texts = source.of(*NUMBERS), source.of(*_ORDERED), source.of(Family.TEXT)
    writers: list[tuple[int, Callable[[], tuple[str, Family]]]] = [
        (2, lambda: ("count(*)", Family.INT)),
        (2, lambda: (f"count({pen.pick(source.fields).ref})", Family.INT)),
        (2, lambda: _distinct(pen, source)),
    ]
    if numbers:
        writers += [(4, lambda: _number(pen, pen.pick(numbers))), (1, lambda: _spread(pen, pen.pick(numbers)))]
    if ordered:
        writers += [(3, lambda: _extreme(pen, pen.pick(ordered))), (2, lambda: _by_order(pen, source, ordered))]
    if texts:
        writers.append((1, lambda: _string_agg(pen, pen.pick(texts))))
    truths = source.of(Family.BOOL)
    if truths:
        writers.append((2, lambda: (f"{pen.pick(('bool_and', 'bool_or'))}({pen.pick(truths).ref})", Family.BOOL)))
    return pen.one_of(writers)


def _distinct(pen: Pen, source: Source) -> tuple[str, Family]:
    pen.note("distinct aggregate")
    whole = source.of(Family.INT, Family.FLOAT)
    if whole and pen.chance(40):
        found = pen.pick(whole)
        return f"sum(DISTINCT {found.ref})", found.family
    return f"count(DISTINCT {pen.pick(source.fields).ref})", Family.INT


def _number(pen: Pen, found: Field) -> tuple[str, Family]:
    if found.family is Family.INT and pen.chance(25):
        pen.note("bit aggregate")
        return f"{pen.pick(('bit_and', 'bit_or', 'bit_xor'))}(CAST({found.ref} AS BIGINT))", Family.INT
    function = pen.pick(("sum", "sum", "avg", "median"))
    pen.note(function)
    average = Family.FLOAT if found.family is Family.INT else found.family
    return f"{function}({found.ref})", found.family if function == "sum" else average


def _spread(pen: Pen, found: Field) -> tuple[str, Family]:
    """Rounded: the last digits of a variance depend on the order of its terms."""
    pen.note("variance")
    function = pen.pick(("var_pop", "stddev", "var_samp"))
    return f"round(CAST({function}({found.ref}) AS DOUBLE), 3)", Family.FLOAT


def _extreme(pen: Pen, found: Field) -> tuple[str, Family]:
    pen.note("min/max")
    return f"{pen.pick(('min', 'max'))}({found.ref})", found.family


def _by_order(pen: Pen, source: Source, ordered: list[Field]) -> tuple[str, Family]:
    pen.note("ordered aggregate")
    found = pen.pick(ordered)
    lists = {Family.INT: Family.INT_LIST, Family.TEXT: Family.TEXT_LIST}
    if found.family in lists and pen.chance(50):
        distinct = "DISTINCT " if pen.chance(30) else ""
        return f"array_agg({distinct}{found.ref} ORDER BY {pen.order([found])})", lists[found.family]
    terms = [term for term in source.total if term != found] + [found]
    return f"{pen.pick(('first_value', 'last_value'))}({found.ref} ORDER BY {pen.order(terms)})", found.family


def _string_agg(pen: Pen, found: Field) -> tuple[str, Family]:
    pen.note("ordered aggregate")
    distinct = "DISTINCT " if pen.chance(30) else ""
    return f"string_agg({distinct}{found.ref}, '-' ORDER BY {pen.order([found])})", Family.TEXT
