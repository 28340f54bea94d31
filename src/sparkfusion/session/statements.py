"""Statements that the session answers itself, or has to look at before DataFusion does."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparkfusion.session.sql_text import closing_parenthesis, mask, without_comments

_NAME = r"[A-Za-z_][\w.]*"
_OPTION_NAME = r"(?:datafusion|sparkfusion)\.[\w.]+"
_SET = re.compile(rf"\s*SET\s+(?:VARIABLE\s+)?({_NAME})\s*(?:=|\bTO\b)\s*([^\s;][^;]*?)[\s;]*", re.IGNORECASE)
_SHOW = re.compile(rf"\s*SHOW\s+(ALL|{_OPTION_NAME})(\s+VERBOSE)?[\s;]*", re.IGNORECASE)
_RESET = re.compile(rf"\s*RESET\s+({_OPTION_NAME})[\s;]*", re.IGNORECASE)
_EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)
_EXPLAIN_WORDS = re.compile(r"\s*EXPLAIN\b(?:\s+(?:ANALYZE|VERBOSE)\b)*", re.IGNORECASE)
_COPY = re.compile(r"\bCOPY(?:\s*(?P<open>\()|\s+(?P<table>[\w.\"`$]+)\s+(?=TO\b))", re.IGNORECASE)
_OF_TABLES = re.compile(
    r"\s*(?:DROP|CREATE(?:\s+OR\s+REPLACE)?(?:\s+(?:UNBOUNDED|EXTERNAL|TEMP|TEMPORARY))*)\s+TABLE\b", re.IGNORECASE
)


@dataclass(frozen=True)
class SetOption:
    """`SET name = value`; no value means `RESET name`."""

    name: str
    value: str | None


@dataclass(frozen=True)
class ShowOption:
    """`SHOW name`; no name means `SHOW ALL`. `verbose` adds what a setting means."""

    name: str | None
    verbose: bool = False


@dataclass(frozen=True)
class CopyQuery:
    """`COPY source tail`: the source is a query or a table's name, the tail begins with TO."""

    source: str
    is_query: bool
    tail: str


Statement = SetOption | ShowOption


def without_leading_comments(sql: str) -> str:
    """The statement itself.

    >>> without_leading_comments("-- set it\\n /* now */ SET a = 1")
    'SET a = 1'
    """
    masked = mask(sql)
    return sql[len(masked) - len(masked.lstrip()) :]


def makes_or_drops_tables(sql: str) -> bool:
    """Whether a statement is DDL of tables, for which a view is something else.

    >>> makes_or_drops_tables("drop /* it */ table t"), makes_or_drops_tables("create view v as table t")
    (True, False)
    """
    return _OF_TABLES.match(mask(sql)) is not None


def parse_statement(sql: str) -> Statement | None:
    """The statement if it is one of ours; None if DataFusion should have it as it is.

    >>> parse_statement("SET sparkfusion.slots = 4 -- enough")
    SetOption(name='sparkfusion.slots', value='4')
    >>> parse_statement("select 1") is None
    True
    """
    masked = mask(sql)
    if found := _SET.fullmatch(masked):
        return SetOption(found[1].lower(), _unquoted(sql[found.start(2) : found.end(2)]))
    if found := _SHOW.fullmatch(masked):
        return ShowOption(None if found[1].upper() == "ALL" else found[1].lower(), verbose=found[2] is not None)
    if found := _RESET.fullmatch(masked):
        return SetOption(found[1].lower(), None)
    return None


def is_explain(sql: str) -> bool:
    """Whether the statement is an EXPLAIN, of whatever.

    >>> is_explain("explain format tree select 1"), is_explain("select 'explain'")
    (True, False)
    """
    return _EXPLAIN.match(mask(sql)) is not None


def split_explain(sql: str) -> tuple[str, str]:
    """The words of an EXPLAIN, and the statement after them.

    >>> split_explain("explain analyze select 1"), split_explain("select 1")
    (('explain analyze ', 'select 1'), ('', 'select 1'))
    """
    found = _EXPLAIN_WORDS.match(mask(sql))
    return (sql[: found.end()] + " ", sql[found.end() :].strip()) if found else ("", sql)


def parse_copy(sql: str) -> CopyQuery | None:
    """The parts of a COPY statement, also below an EXPLAIN; None for any other.

    >>> parse_copy("copy (select ')' from t -- :)\\n) to 'x.csv'")
    CopyQuery(source="select ')' from t -- :)\\n", is_query=True, tail="to 'x.csv'")
    >>> parse_copy("COPY t TO 'x.parquet'").source
    't'
    """
    masked = mask(sql)
    found = _COPY.search(masked) if _EXPLAIN.match(masked) else _COPY.match(masked, len(masked) - len(masked.lstrip()))
    if found is None:
        return None
    begin, end, rest = found.start("table"), found.end("table"), found.end()
    if found["open"]:
        closing = closing_parenthesis(masked, found.end())
        if closing is None:
            return None
        begin, end, rest = found.end(), closing, closing + 1
    tail = sql[rest : rest + len(masked[rest:].rstrip("; \t\r\n"))]
    return CopyQuery(sql[begin:end], is_query=bool(found["open"]), tail=without_comments(tail).strip())


def _unquoted(text: str) -> str:
    """A value as DataFusion reads it: without its quotes, of whichever kind.

    >>> _unquoted("'it''s'"), _unquoted('"s"'), _unquoted("4MiB")
    ("it's", 's', '4MiB')
    """
    quote = text[0]
    if len(text) > 1 and quote in "'\"" and text[-1] == quote:
        return text[1:-1].replace(quote * 2, quote)
    return text
