"""Window functions. Those that count rows get a total order; those that count peers may have ties."""

from __future__ import annotations

from tests.fuzz.expressions import condition
from tests.fuzz.kinds import NUMBERS, Family
from tests.fuzz.scope import Field, Pen, Query, Source
from tests.fuzz.selects import Item, item, plain, select_list, where

_ROWS_FRAMES = (
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)
_PEER_FRAMES = (
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
)


def windowed(pen: Pen, source: Source, depth: int) -> Query:
    """Some columns beside one to three window functions, maybe with QUALIFY.

    DataFusion 55 has no window over an order by bytes.
    """
    if any(found.family is Family.BINARY for found in source.total):
        return plain(pen, source, depth)
    shown = [item(pen, found.ref, found.family, unsigned=found.unsigned) for found in pen.some(source.fields, 1, 3)]
    functions = [_function(pen, source) for _ in range(pen.number(1, 3))]
    items = [*shown, *functions]
    sql = f"SELECT {select_list(items)} FROM {source.sql}{where(pen, source, depth)}"
    ranked = [column.ref for text, column in functions if text.startswith(("row_number", "rank", "dense_rank"))]
    if ranked and pen.chance(25):
        pen.note("qualify")
        sql += f" QUALIFY {pen.pick(ranked)} <= {pen.number(1, 2)}"
    out = tuple(column for _, column in items)
    return Query(sql, out, tuple(column.ref for column in out), source.rows)


def _function(pen: Pen, source: Source) -> Item:
    return pen.one_of(
        [
            (3, lambda: _position(pen, source)),
            (2, lambda: _peers(pen, source)),
            (2, lambda: _neighbour(pen, source)),
            (4, lambda: _aggregate(pen, source)),
            (1, lambda: _lossy(pen, source)),
        ]
    )


def _partition(pen: Pen, source: Source) -> str:
    fields = pen.some(source.scalars, 0, 2)
    if not fields:
        pen.note("window without partition")
        return ""
    pen.note("window with partition")
    return f"PARTITION BY {', '.join(found.ref for found in fields)}"


def _total(pen: Pen, source: Source) -> str:
    leading = [found for found in pen.some(_sortable(source), 0, 1) if found not in source.total]
    return f"ORDER BY {pen.order([*leading, *source.total])}"


def _ties(pen: Pen, source: Source) -> str:
    return f"ORDER BY {pen.order(pen.some(_sortable(source) or source.total, 1, 2))}"


def _sortable(source: Source) -> list[Field]:
    return [found for found in source.scalars if found.family is not Family.BINARY]


def _over(*parts: str) -> str:
    return f"OVER ({' '.join(part for part in parts if part)})"


def _position(pen: Pen, source: Source) -> Item:
    function = pen.pick(("row_number()", "ntile(3)"))
    pen.note(f"window {function.split('(', maxsplit=1)[0]}")
    return item(pen, f"{function} {_over(_partition(pen, source), _total(pen, source))}", Family.INT, unsigned=True)


def _peers(pen: Pen, source: Source) -> Item:
    function = pen.pick(("rank", "dense_rank", "percent_rank", "cume_dist"))
    pen.note(f"window {function}")
    family = Family.INT if function.endswith("k") and function != "percent_rank" else Family.FLOAT
    return item(pen, f"{function}() {_over(_partition(pen, source), _ties(pen, source))}", family)


def _neighbour(pen: Pen, source: Source) -> Item:
    found = pen.pick(source.scalars or source.fields)
    function = pen.pick(
        ("lag({0})", "lead({0})", "lag({0}, 2)", "first_value({0})", "last_value({0})", "nth_value({0}, 2)")
    )
    pen.note(f"window {function.split('(', maxsplit=1)[0]}")
    frame = pen.pick(("", *_ROWS_FRAMES)) if "value" in function else ""
    over = _over(_partition(pen, source), _total(pen, source), frame)
    return item(pen, f"{function.format(found.ref)} {over}", found.family)


def _aggregate(pen: Pen, source: Source) -> Item:
    sql, family = _call(pen, source)
    parts = pen.one_of(
        [
            (2, lambda: ["", ""]),
            (3, lambda: [_total(pen, source), pen.pick(("", *_ROWS_FRAMES))]),
            (2, lambda: [_ties(pen, source), pen.pick(("", *_PEER_FRAMES))]),
            (1, lambda: _range_frame(pen, source)),
        ]
    )
    pen.note("window aggregate" if parts[0] else "window aggregate, unordered")
    return item(pen, f"{sql} {_over(_partition(pen, source), *parts)}", family)


def _range_frame(pen: Pen, source: Source) -> list[str]:
    whole: list[Field] = source.of(Family.INT)
    if not whole:
        return ["", ""]
    pen.note("window range frame")
    return [f"ORDER BY {pen.pick(whole).ref}", "RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING"]


def _call(pen: Pen, source: Source) -> tuple[str, Family]:
    numbers = source.of(*NUMBERS)
    if not numbers or pen.chance(20):
        return pen.pick(("count(*)", f"count({pen.pick(source.fields).ref})")), Family.INT
    found = pen.pick(numbers)
    function = pen.pick(("sum", "max", "min", "avg"))
    average = Family.FLOAT if found.family is Family.INT else found.family
    return f"{function}({found.ref})", average if function == "avg" else found.family


def _lossy(pen: Pen, source: Source) -> Item:
    """What DataFusion 55 loses when a plan is encoded: FILTER and IGNORE NULLS of window functions."""
    over = _over(_partition(pen, source), _total(pen, source))
    if pen.chance(50):
        pen.note("window filter")
        sql, family = _call(pen, source)
        return item(pen, f"{sql} FILTER (WHERE {condition(pen, source.fields)}) {over}", family)
    pen.note("window ignore nulls")
    found = pen.pick(source.scalars or source.fields)
    return item(pen, f"{pen.pick(('lag', 'lead', 'first_value'))}({found.ref}) IGNORE NULLS {over}", found.family)
