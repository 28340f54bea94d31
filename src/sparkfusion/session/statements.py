"""Statements that the session answers itself, or has to look at before DataFusion does."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparkfusion.errors import UserError
from sparkfusion.session.sql_text import closing_parenthesis, mask, without_comments

_NAME = r"[A-Za-z_][\w.]*"
_OPTION_NAME = r"(?:datafusion|sparkfusion)\.[\w.]+"
_SET = re.compile(rf"\s*SET\s+(?:VARIABLE\s+)?({_NAME})\s*(?:=|\bTO\b)\s*([^\s;][^;]*?)[\s;]*", re.IGNORECASE)
_SHOW = re.compile(rf"\s*SHOW\s+(ALL|{_OPTION_NAME})(\s+VERBOSE)?[\s;]*", re.IGNORECASE)
_RESET = re.compile(rf"\s*RESET\s+({_OPTION_NAME})[\s;]*", re.IGNORECASE)
_QUERY = re.compile(r"\s*(?:SELECT|WITH|VALUES|FROM|TABLE)\b|\s*\(", re.IGNORECASE)
_EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)
_EXPLAIN_WORDS = re.compile(
    r"\s*EXPLAIN\b(?:\s+(?:ANALYZE|VERBOSE)\b)*(?P<clause>\s+FORMAT\s+(?P<format>\w+|'x*'|\"x*\"))?", re.IGNORECASE
)
_EXPLAIN_OPTIONS = re.compile(r"\s*EXPLAIN\s*\((?=\s*(?:ANALYZE|VERBOSE|FORMAT)\b)", re.IGNORECASE)
_EXPLAIN_FORMAT = re.compile(r"\s*FORMAT\s+(\w+|'x*'|\"x*\")\s*", re.IGNORECASE)
_EXPLAIN_VERBOSE = re.compile(r"\bVERBOSE\b(?!\s+(?:FALSE|OFF|0)\b)", re.IGNORECASE)
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


@dataclass(frozen=True)
class ExplainText:
    """An EXPLAIN in its parts: the words before the statement, without its format and with it; the statement; and the
    format that was asked for, if one was."""

    words: str
    words_with_format: str
    statement: str
    verbose: bool = False
    format: str | None = None


OptionStatement = SetOption | ShowOption


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


def parse_statement(sql: str) -> OptionStatement | None:
    """The statement if it is one of ours; None if DataFusion should have it as it is. NULL is not a value.

    >>> parse_statement("SET sparkfusion.slots = 4 -- enough")
    SetOption(name='sparkfusion.slots', value='4')
    >>> parse_statement("select 1") is None
    True
    """
    masked = mask(sql)
    if found := _SET.fullmatch(masked):
        if found[2].upper() == "NULL":
            raise UserError(f"cannot set {found[1]} to NULL", hint=f"RESET {found[1]} restores its first value")
        return SetOption(found[1].lower(), _unquote(sql[found.start(2) : found.end(2)]))
    if found := _SHOW.fullmatch(masked):
        return ShowOption(None if found[1].upper() == "ALL" else found[1].lower(), verbose=found[2] is not None)
    if found := _RESET.fullmatch(masked):
        return SetOption(found[1].lower(), None)
    return None


def is_query(sql: str) -> bool:
    """Whether the statement only reads: it returns rows and changes nothing, unless its functions do.

    >>> is_query("/* all */ (select 1)"), is_query("from t"), is_query("set a = 'select'")
    (True, True, False)
    """
    return _QUERY.match(mask(sql)) is not None


def is_explain(sql: str) -> bool:
    """Whether the statement is an EXPLAIN of any kind.

    >>> is_explain("explain format tree select 1"), is_explain("select 'explain'")
    (True, False)
    """
    return _EXPLAIN.match(mask(sql)) is not None


def split_explain(sql: str) -> ExplainText:
    """The parts of an EXPLAIN; no words if it is another statement. Options may be in parentheses, as in PostgreSQL.

    >>> asked = split_explain("explain analyze format json select 1")
    >>> asked.words, asked.format, asked.statement
    ('explain analyze', 'json', 'select 1')
    >>> asked = split_explain("explain (format tree, verbose) select 1")
    >>> asked.words, asked.format, asked.verbose
    ('explain (verbose)', 'tree', True)
    >>> split_explain("explain (select 1)").statement, split_explain("select 1").words
    ('(select 1)', '')
    """
    masked = mask(sql)
    listed = _EXPLAIN_OPTIONS.match(masked)
    closing = closing_parenthesis(masked, listed.end()) if listed is not None else None
    if listed is not None and closing is not None:
        return _split_options(sql, listed.end(), closing)
    found = _EXPLAIN_WORDS.match(masked)
    if found is None:
        return ExplainText("", "", sql)
    words = sql[: found.start("clause") if found["clause"] else found.end()]
    chosen = _unquote(sql[found.start("format") : found.end("format")]).lower() if found["format"] else None
    verbose = _EXPLAIN_VERBOSE.search(mask(words)) is not None
    return ExplainText(words, sql[: found.end()], sql[found.end() :].strip(), verbose, chosen)


def _split_options(sql: str, begin: int, end: int) -> ExplainText:
    masked, kept, chosen = mask(sql), [], None
    position = begin
    for option in masked[begin:end].split(","):
        found = _EXPLAIN_FORMAT.fullmatch(option)
        if found is None:
            kept.append(sql[position : position + len(option)].strip())
        else:
            chosen = _unquote(sql[position + found.start(1) : position + found.end(1)]).lower()
        position += len(option) + 1
    words = sql[: begin - 1].rstrip() + (f" ({', '.join(kept)})" if kept else "")
    verbose = any(map(_EXPLAIN_VERBOSE.match, kept))
    return ExplainText(words, sql[: end + 1], sql[end + 1 :].strip(), verbose, chosen)


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


def _unquote(text: str) -> str:
    """A value as DataFusion reads it: without its quotes, of whichever kind.

    >>> _unquote("'it''s'"), _unquote('"s"'), _unquote("4MiB")
    ("it's", 's', '4MiB')
    """
    quote = text[0]
    if len(text) > 1 and quote in "'\"" and text[-1] == quote:
        return text[1:-1].replace(quote * 2, quote)
    return text
