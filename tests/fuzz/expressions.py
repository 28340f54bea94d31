"""Typed scalar expressions over the fields in scope. None of them can fail at run time; see errors.py for those."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.fuzz.kinds import COMPARED, Family
from tests.fuzz.scope import Field, Pen
from tests.fuzz.values import WORDS

Writer = Callable[[], str]

LITERALS: dict[Family, tuple[str, ...]] = {
    Family.INT: ("1", "0", "-1", "2", "3", "10"),
    Family.FLOAT: ("0.5", "0.0", "-1.25", "2.0"),
    Family.DECIMAL: ("CAST(1.25 AS DECIMAL(10, 2))", "CAST(-2.5 AS DECIMAL(10, 2))"),
    Family.TEXT: tuple("'" + word.replace("'", "''") + "'" for word in WORDS[:9]),
    Family.DATE: ("DATE '2024-02-01'", "DATE '2024-01-31'"),
    Family.TIMESTAMP: ("TIMESTAMP '2024-03-31 00:00:00'", "TIMESTAMP '2024-03-30 22:30:00'"),
    Family.INSTANT: ("CAST('2024-03-31T01:30:00Z' AS TIMESTAMPTZ)",),
    Family.BOOL: ("TRUE", "FALSE"),
    Family.BINARY: ("X'6162'", "X''"),
    Family.INT_LIST: ("make_array(1, 2)",),
    Family.TEXT_LIST: ("make_array('a', 'b')",),
    Family.STRUCT: ("named_struct('a', 1, 'b', 'a')",),
}

SQL_TYPES: dict[Family, str] = {
    Family.INT: "BIGINT",
    Family.FLOAT: "DOUBLE",
    Family.DECIMAL: "DECIMAL(20, 2)",
    Family.TEXT: "VARCHAR",
    Family.DATE: "DATE",
    Family.TIMESTAMP: "TIMESTAMP",
    Family.INSTANT: "TIMESTAMPTZ",
    Family.BOOL: "BOOLEAN",
    Family.BINARY: "BYTEA",
}

_COMPARISONS = ("=", "<", ">", "<>", "<=", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")


def expression(pen: Pen, fields: Sequence[Field], family: Family, depth: int = 1) -> str:
    """An expression of that family, mostly a column."""
    if depth <= 0 or pen.chance(55):
        return leaf(pen, fields, family)
    if family is Family.BOOL:
        return condition(pen, fields, depth)
    choices: list[Writer] = [*_special(pen, fields, family, depth)]
    if family in COMPARED and family is not Family.BINARY:
        choices += [lambda: _case(pen, fields, family, depth), lambda: _coalesce(pen, fields, family, depth)]
    return pen.pick(choices)() if choices else leaf(pen, fields, family)


def leaf(pen: Pen, fields: Sequence[Field], family: Family) -> str:
    """A column of that family, or else a literal."""
    columns = [found for found in fields if found.family is family]
    if columns and not pen.chance(15):
        return pen.pick(columns).ref
    if family in SQL_TYPES and pen.chance(10):
        return f"CAST(NULL AS {SQL_TYPES[family]})"
    return pen.pick(LITERALS[family])


def _case(pen: Pen, fields: Sequence[Field], family: Family, depth: int) -> str:
    pen.note("case")
    test, then = condition(pen, fields, depth - 1), expression(pen, fields, family, depth - 1)
    otherwise = f" ELSE {expression(pen, fields, family, depth - 1)}" if pen.chance(60) else ""
    return f"CASE WHEN {test} THEN {then}{otherwise} END"


def _coalesce(pen: Pen, fields: Sequence[Field], family: Family, depth: int) -> str:
    first, second = expression(pen, fields, family, depth - 1), expression(pen, fields, family, depth - 1)
    if pen.chance(30) and family in COMPARED:
        pen.note("nullif")
        return f"nullif({first}, {second})"
    pen.note("coalesce")
    return f"coalesce({first}, {second})"


def _special(pen: Pen, fields: Sequence[Field], family: Family, depth: int) -> list[Writer]:
    def sub(of: Family) -> str:
        return expression(pen, fields, of, depth - 1)

    def whole() -> str:  # unsigned arithmetic wraps around, and mixes with signed into decimals
        columns = [found for found in fields if found.family is Family.INT]
        if columns and pen.chance(70):
            return f"CAST({pen.pick(columns).ref} AS BIGINT)"
        return pen.pick(LITERALS[Family.INT])

    match family:
        case Family.INT:
            return _int_writers(pen, fields, whole, sub)
        case Family.FLOAT:
            return [
                lambda: f"({sub(Family.FLOAT)} {pen.pick(('+', '-'))} {pen.pick(LITERALS[Family.FLOAT])})",
                lambda: f"({sub(Family.FLOAT)} {pen.pick(('*', '/'))} 2.0)",
                lambda: f"CAST({whole()} AS DOUBLE)",
                lambda: f"abs({sub(Family.FLOAT)})",
            ]
        case Family.DECIMAL:
            return [
                lambda: f"({leaf(pen, fields, family)} {pen.pick(('+', '-'))} {pen.pick(LITERALS[family])})",
                lambda: f"CAST({pen.pick(LITERALS[Family.INT])} AS DECIMAL(10, 2))",
                lambda: f"-{leaf(pen, fields, family)}" if fields else "1.5",
            ]
        case Family.TEXT:
            return _text_writers(pen, whole, sub)
        case Family.DATE:
            return [
                lambda: f"({sub(Family.DATE)} + INTERVAL '{pen.pick(('1 day', '1 month'))}')",
                lambda: f"CAST({sub(Family.TIMESTAMP)} AS DATE)",
            ]
        case Family.TIMESTAMP:
            return [
                lambda: f"({sub(Family.TIMESTAMP)} + INTERVAL '90 minutes')",
                lambda: f"date_trunc('{pen.pick(('hour', 'day', 'month'))}', {sub(Family.TIMESTAMP)})",
                lambda: f"CAST({sub(Family.DATE)} AS TIMESTAMP)",
            ]
        case Family.INSTANT:
            return [lambda: f"date_trunc('{pen.pick(('hour', 'day'))}', {sub(Family.INSTANT)})"]
        case Family.INT_LIST:
            return [lambda: f"make_array({whole()}, {whole()})"]
        case Family.STRUCT:
            return [lambda: f"named_struct('a', {whole()}, 'b', CAST({sub(Family.TEXT)} AS VARCHAR))"]
        case _:
            return []


def _int_writers(pen: Pen, fields: Sequence[Field], whole: Writer, sub: Callable[[Family], str]) -> list[Writer]:
    writers: list[Writer] = [
        lambda: f"({whole()} {pen.pick(('+', '-', '*'))} {whole()})",
        lambda: f"({whole()} {pen.pick(('%', '/'))} {pen.pick(('3', '-2', '7'))})",
        lambda: f"abs({whole()})",
        lambda: f"CAST({sub(Family.BOOL)} AS INT)",
        lambda: f"character_length({sub(Family.TEXT)})",
        lambda: f"{pen.pick(('greatest', 'least'))}({whole()}, {whole()})",
        lambda: f"TRY_CAST({sub(Family.TEXT)} AS BIGINT)",
        lambda: f"CAST(date_part('{pen.pick(('day', 'month', 'dow'))}', {sub(Family.DATE)}) AS BIGINT)",
    ]
    lists = [found for found in fields if found.family is Family.INT_LIST]
    structs = [found for found in fields if found.family is Family.STRUCT]
    if lists:
        writers.append(lambda: f"CAST(cardinality({pen.pick(lists).ref}) AS BIGINT)")
        writers.append(lambda: f"{pen.pick(lists).ref}[{pen.number(1, 3)}]")
    if structs:
        writers.append(lambda: f"{pen.pick(structs).ref}['a']")
    return writers


def _text_writers(pen: Pen, whole: Writer, sub: Callable[[Family], str]) -> list[Writer]:
    return [
        lambda: f"({sub(Family.TEXT)} || {sub(Family.TEXT)})",
        lambda: f"{pen.pick(('upper', 'lower', 'trim', 'reverse'))}({sub(Family.TEXT)})",
        lambda: f"substr({sub(Family.TEXT)}, 1, {pen.number(1, 3)})",
        lambda: f"replace({sub(Family.TEXT)}, 'a', 'xyz')",
        lambda: f"CAST({whole()} AS VARCHAR)",
        lambda: f"CAST({sub(Family.DATE)} AS VARCHAR)",
        lambda: f"encode({sub(Family.BINARY)}, 'hex')",
    ]


def condition(pen: Pen, fields: Sequence[Field], depth: int = 1) -> str:
    """A boolean expression, mostly a comparison."""
    if depth > 0 and pen.chance(25):
        left, right = condition(pen, fields, depth - 1), condition(pen, fields, depth - 1)
        return pen.pick((f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})"))
    families = [family for family in COMPARED if any(found.family is family for found in fields)]
    family = pen.pick(families) if families else Family.INT
    columns = [found for found in fields if found.family is family]
    value = pen.pick(columns).ref if columns else pen.pick(LITERALS[family])
    others = [found for found in fields if found.ref != value]
    writers: list[tuple[int, Writer]] = [
        (6, lambda: _comparison(pen, value, others, family, depth)),
        (1, lambda: f"{value} IS {pen.pick(('NULL', 'NOT NULL'))}"),
        (1, lambda: f"{value} {pen.pick(('IN', 'NOT IN'))} ({', '.join(_list_of(pen, family))})"),
        (1, lambda: f"{value} BETWEEN {leaf(pen, others, family)} AND {pen.pick(LITERALS[family])}"),
    ]
    if family is Family.TEXT:
        writers.append((2, lambda: f"{value} {pen.pick(('LIKE', 'NOT LIKE', 'ILIKE'))} {_pattern(pen)}"))
    truths = [found for found in fields if found.family is Family.BOOL]
    if truths:
        writers.append((1, lambda: pen.pick(truths).ref))
        writers.append((1, lambda: f"{pen.pick(truths).ref} IS NOT {pen.pick(('TRUE', 'FALSE'))}"))
    lists = [found for found in fields if found.family is Family.INT_LIST]
    if lists:
        writers.append((1, lambda: f"array_has({pen.pick(lists).ref}, {pen.number(0, 3)})"))
    return pen.one_of(writers)


def _comparison(pen: Pen, value: str, others: Sequence[Field], family: Family, depth: int) -> str:
    operator = pen.pick(_COMPARISONS)
    other = pen.pick(LITERALS[family]) if pen.chance(40) else expression(pen, others, family, depth - 1)
    text = f"{value} {operator} {other}"
    return f"({text})" if operator.startswith("IS") else text  # DataFusion reads x IS DISTINCT FROM (y AND …)


def _list_of(pen: Pen, family: Family) -> list[str]:
    listed = pen.some(LITERALS[family], 1, 3)
    if pen.chance(20) and family in SQL_TYPES:
        listed.append(f"CAST(NULL AS {SQL_TYPES[family]})")
    return listed


def _pattern(pen: Pen) -> str:
    return pen.pick(("'a%'", "'%b%'", "'_'", "'%twelve%'", "''"))
