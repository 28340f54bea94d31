"""Statements that the session answers itself, or has to look at before DataFusion does."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparkfusion.session.sql_text import closing_parenthesis, mask

_NAME = r"[A-Za-z_][\w.]*"
_OPTION_NAME = r"(?:datafusion|sparkfusion)\.[\w.]+"
_SET = re.compile(rf"\s*SET\s+(?:VARIABLE\s+)?({_NAME})\s*(?:=|\bTO\b)\s*([^\s;][^;]*?)[\s;]*", re.IGNORECASE)
_SHOW = re.compile(rf"\s*SHOW\s+(ALL|{_OPTION_NAME})(\s+VERBOSE)?[\s;]*", re.IGNORECASE)
_RESET = re.compile(rf"\s*RESET\s+({_OPTION_NAME})[\s;]*", re.IGNORECASE)
_EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)
_COPY = re.compile(r"\bCOPY(?:\s*(?P<open>\()|\s+(?P<table>[\w.\"`$]+)\s+(?=TO\b))", re.IGNORECASE)
_EXTERNAL = re.compile(
    r"^\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:UNBOUNDED\s+)?EXTERNAL\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?P<name>(?:\"[^\"]+\"|[\w]+)(?:\.(?:\"[^\"]+\"|[\w]+))*)(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_OF_TABLES = re.compile(
    r"\s*(?:DROP|CREATE(?:\s+OR\s+REPLACE)?(?:\s+(?:UNBOUNDED|EXTERNAL|TEMP|TEMPORARY))*)\s+TABLE\b", re.IGNORECASE
)
_STORED_AS = re.compile(r"\bSTORED\s+AS\s+(CSV|JSON|NDJSON)\b", re.IGNORECASE)
_OPTIONS = re.compile(r"\bOPTIONS\s*\(", re.IGNORECASE)
_OPTION = re.compile(r"(?:'([^']+)'|([\w.:]+))\s+(?:'[^']*'|[^\s,)]+)")

_CARRIED_OPTIONS = {"has_header", "delimiter", "quote", "escape", "comment", "newlines_in_values", "truncated_rows"}
_PLANNING_OPTIONS = {"schema_infer_max_rec"}


@dataclass(frozen=True)
class SetOption:
    name: str
    value: str


@dataclass(frozen=True)
class ShowOption:
    """`SHOW name`; no name means `SHOW ALL`. `verbose` adds what a setting means."""

    name: str | None
    verbose: bool = False


@dataclass(frozen=True)
class ResetOption:
    name: str


@dataclass(frozen=True)
class CopyQuery:
    """`COPY source tail`: the source is a query or a table's name, the tail begins with TO."""

    source: str
    is_query: bool
    tail: str


Statement = SetOption | ShowOption | ResetOption


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
        return ResetOption(found[1].lower())
    return None


def is_explain(sql: str) -> bool:
    """Whether the statement is an EXPLAIN, of whatever.

    >>> is_explain("explain format tree select 1"), is_explain("select 'explain'")
    (True, False)
    """
    return _EXPLAIN.match(mask(sql)) is not None


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
    return CopyQuery(sql[begin:end], is_query=bool(found["open"]), tail=tail.lstrip())


def lossy_external_table(sql: str) -> tuple[str, str | None] | None:
    """For CREATE EXTERNAL TABLE over CSV or JSON: the table's name, and which options a plan's encoding would lose.

    >>> lossy_external_table("create external table t stored as csv location 'x' options ('format.null_regex' 'NA')")
    ('t', "option 'format.null_regex'")
    """
    found = _EXTERNAL.match(sql)
    stored = _STORED_AS.search(found["rest"]) if found is not None else None
    if found is None or stored is None:
        return None
    begin = _OPTIONS.search(found["rest"])
    options = _OPTION.findall(found["rest"][begin.end() :].split(")")[0]) if begin is not None else []
    lost = [quoted or bare for quoted, bare in options if not _is_carried(quoted or bare, stored[1].upper())]
    return found["name"], "option " + ", ".join(repr(name) for name in lost) if lost else None


def _is_carried(option: str, file_format: str) -> bool:
    name = option.lower().removeprefix("format.")
    return name in _PLANNING_OPTIONS or (file_format == "CSV" and name in _CARRIED_OPTIONS)


def _unquoted(text: str) -> str:
    """A value as DataFusion reads it: without its quotes, of whichever kind.

    >>> _unquoted("'it''s'"), _unquoted('"s"'), _unquoted("4MiB")
    ("it's", 's', '4MiB')
    """
    quote = text[0]
    if len(text) > 1 and quote in "'\"" and text[-1] == quote:
        return text[1:-1].replace(quote * 2, quote)
    return text
