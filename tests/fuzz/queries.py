"""Whole queries: every feature can stand in every other, to a bounded depth."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.aggregates import aggregated, grouping_sets
from tests.fuzz.kinds import Family
from tests.fuzz.scope import Pen, Query, Source, query_source, table_source
from tests.fuzz.selects import distinct_on, item, limited, ordered, plain, select_list, unnested
from tests.fuzz.sources import source
from tests.fuzz.windows import windowed

_SET_OPERATIONS = ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")


def query(pen: Pen, depth: int) -> Query:
    """A query whose answer, as a multiset, is the same every time it is run."""
    written = pen.one_of(
        [
            (5, lambda: plain(pen, source(pen, depth, query), depth)),
            (5, lambda: aggregated(pen, source(pen, depth, query), depth)),
            (2, lambda: grouping_sets(pen, source(pen, depth, query), depth)),
            (3, lambda: windowed(pen, source(pen, depth, query), depth)),
            (3, lambda: set_operation(pen, depth)),
            (2, lambda: union_of_many(pen)),
            (1, lambda: distinct_on(pen, source(pen, depth, query), depth)),
            (1, lambda: unnested(pen, source(pen, depth, query), depth)),
            (1, lambda: limit_in_count(pen)),
        ]
    )
    return limited(pen, written) if pen.chance(12) else written


def top_query(pen: Pen) -> str:
    """The text of a whole statement."""
    return pen.one_of([(24, lambda: _plain_top(pen)), (4, lambda: twice_used(pen)), (1, lambda: recursive(pen))])


def _plain_top(pen: Pen) -> str:
    written = query(pen, pen.pick((0, 1, 1, 2, 2)))
    if pen.chance(30):
        written = limited(pen, written) if pen.chance(60) else ordered(pen, written)
    return written.sql


def set_operation(pen: Pen, depth: int) -> Query:
    """Two selects with the same families of columns."""
    left_source, right_source = source(pen, depth - 1, query), source(pen, depth - 1, query)
    shared = [f.family for f in left_source.fields if right_source.of(f.family)] or [Family.INT]
    families = pen.some(shared, 1, 3)
    operation = pen.pick(_SET_OPERATIONS)
    pen.note(operation.lower())
    left, right = plain(pen, left_source, 0, families), plain(pen, right_source, 0, families)
    names = tuple(column.ref for column in left.columns)
    return Query(f"{left.sql} {operation} {right.sql}", left.columns, names, left.rows + right.rows)


def union_of_many(pen: Pen) -> Query:
    """An aggregate or a join partner over a union of several tables."""
    pen.note("aggregate over union")
    families: Sequence[Family] = [Family.INT, Family.TEXT, *pen.some((Family.INT, Family.DATE), 0, 1)]
    # Parts that are grouped alike arrive partitioned alike: DataFusion interleaves them instead of shuffling again.
    distinct = pen.chance(40)
    parts = [
        plain(pen, table_source(pen.pick(pen.tables), pen.fresh("a")), 0, families, distinct=distinct)
        for _ in range(pen.number(2, 3))
    ]
    united = Query(
        " UNION ALL ".join(part.sql for part in parts),
        parts[0].columns,
        tuple(column.ref for column in parts[0].columns),
        sum(part.rows for part in parts),
    )
    return aggregated(pen, query_source(united, pen.fresh("u")), 0)


def limit_in_count(pen: Pen) -> Query:
    """How many rows a LIMIT without order gives: any rows, but that many. Joined with another, the counts multiply."""
    pen.note("count of any rows")
    first = _any_rows(pen)
    if pen.chance(40):
        second = _any_rows(pen)
        counted = f"{first.sql} CROSS JOIN {second.sql}"
    else:
        counted = first.sql
    items = [item(pen, "count(*)", Family.INT)]
    return Query(f"SELECT {select_list(items)} FROM {counted}", (items[0][1],), (items[0][1].ref,), 1)


def _any_rows(pen: Pen) -> Source:
    table = table_source(pen.pick(pen.tables), pen.fresh("a"))
    offset = f" OFFSET {pen.number(1, 3)}" if pen.chance(30) else ""
    sql = f"(SELECT * FROM {table.sql} LIMIT {pen.pick((4, 1, 20))}{offset}) AS {pen.fresh('l')}"
    return Source(sql, table.fields, table.key, 20)


def twice_used(pen: Pen) -> str:
    """A CTE that two places read."""
    pen.note("cte used twice")
    name, body = pen.fresh("w"), query(pen, pen.number(0, 1))
    sides = []
    for _ in range(2):
        inner = query_source(body, pen.fresh("w"))
        alias = inner.fields[0].ref.split(".", maxsplit=1)[0]
        sides.append(Source(f"{name} AS {alias}", inner.fields, inner.key, inner.rows))
    if pen.chance(30) or body.rows > 150:
        families = [column.family for column in body.columns]
        parts = [plain(pen, side, 0, families) for side in sides]
        main = f"{parts[0].sql} {pen.pick(_SET_OPERATIONS)} {parts[1].sql}"
    else:
        first, second = sides
        on = " AND ".join(
            f"{a.ref} = {b.ref}" for a, b in pen.some(list(zip(first.fields, second.fields, strict=True)), 1, 2)
        )
        kind = pen.pick(("INNER", "LEFT", "FULL"))
        joined = Source(
            f"{first.sql} {kind} JOIN {second.sql} ON {on}",
            first.fields + second.fields,
            first.key + second.key,
            body.rows**2,
        )
        main = pen.pick((plain, aggregated))(pen, joined, 0).sql
    return f"WITH {name} AS ({body.sql}) {main}"


def recursive(pen: Pen) -> str:
    """A recursive CTE; its plan cannot be encoded, so it must run on a single node."""
    pen.note("recursive cte")
    name, steps = pen.fresh("r"), pen.number(1, 5)
    table = table_source(pen.pick(pen.tables), pen.fresh("a"))
    steps_cte = f"SELECT 1 AS n UNION ALL SELECT n + 1 FROM {name} WHERE n < {steps}"
    joined = f"{name} LEFT JOIN {table.sql} ON {name}.n = {table.key[0]}"
    return f"WITH RECURSIVE {name} AS ({steps_cte}) SELECT {name}.n, count(*) AS c FROM {joined} GROUP BY {name}.n"
