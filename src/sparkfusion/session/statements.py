"""Statements that the session answers itself, or has to look at before DataFusion does."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = r"[A-Za-z_][\w.]*"
_SET = re.compile(rf"^\s*SET\s+(?:VARIABLE\s+)?({_NAME})\s*(?:=|\bTO\b)\s*(.+?)\s*;?\s*$", re.IGNORECASE | re.DOTALL)
_SHOW = re.compile(rf"^\s*SHOW\s+({_NAME})\s*;?\s*$", re.IGNORECASE)
_SHOW_ALL = re.compile(r"^\s*SHOW\s+ALL\s*;?\s*$", re.IGNORECASE)
_RESET = re.compile(rf"^\s*RESET\s+({_NAME})\s*;?\s*$", re.IGNORECASE)
_EXPLAIN = re.compile(
    r"^\s*EXPLAIN\s+(?:(ANALYZE)\s+)?((?:SELECT|WITH|VALUES|TABLE)\b.+|\(.+)$", re.IGNORECASE | re.DOTALL
)
_COMMENTS = re.compile(r"^(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)+", re.DOTALL)
_COPY_TABLE = re.compile(r"^\s*COPY\s+([\w.\"]+)\s+(TO\b.*?)\s*;?\s*$", re.IGNORECASE | re.DOTALL)
_COPY_QUERY = re.compile(r"^\s*COPY\s*\(", re.IGNORECASE)
_EXTERNAL = re.compile(
    r"^\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:UNBOUNDED\s+)?EXTERNAL\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?P<name>(?:\"[^\"]+\"|[\w]+)(?:\.(?:\"[^\"]+\"|[\w]+))*)(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
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
    """`SHOW name`; no name means `SHOW ALL`."""

    name: str | None


@dataclass(frozen=True)
class ResetOption:
    name: str


@dataclass(frozen=True)
class CopyQuery:
    """`COPY source tail`: the source is a query or a table's name, the tail begins with TO."""

    source: str
    is_query: bool
    tail: str


@dataclass(frozen=True)
class ExplainQuery:
    query: str
    analyze: bool


Statement = SetOption | ShowOption | ResetOption | ExplainQuery


def without_leading_comments(sql: str) -> str:
    """The statement itself.

    >>> without_leading_comments("-- set it\\n /* now */ SET a = 1")
    'SET a = 1'
    """
    return _COMMENTS.sub("", sql)


def parse_statement(sql: str) -> Statement | None:
    """The statement if it is one of ours; None if DataFusion should have it as it is.

    >>> parse_statement("SET sparkfusion.slots = 4")
    SetOption(name='sparkfusion.slots', value='4')
    >>> parse_statement("select 1") is None
    True
    """
    if found := _SET.match(sql):
        return SetOption(found[1].lower(), _unquoted(found[2]))
    if _SHOW_ALL.match(sql):
        return ShowOption(None)
    if (found := _SHOW.match(sql)) and found[1].lower().startswith("sparkfusion."):
        return ShowOption(found[1].lower())
    if (found := _RESET.match(sql)) and found[1].lower().startswith("sparkfusion."):
        return ResetOption(found[1].lower())
    if found := _EXPLAIN.match(sql):
        return ExplainQuery(found[2], analyze=found[1] is not None)
    return None


def parse_copy(sql: str) -> CopyQuery | None:
    """The parts of a COPY statement; None for any other.

    >>> parse_copy("copy (select ')' from t) to 'x.csv'")
    CopyQuery(source="select ')' from t", is_query=True, tail="to 'x.csv'")
    >>> parse_copy("COPY t TO 'x.parquet'").source
    't'
    """
    if found := _COPY_TABLE.match(sql):
        return CopyQuery(found[1], is_query=False, tail=found[2])
    found = _COPY_QUERY.match(sql)
    if found is None:
        return None
    depth, quote = 1, ""
    for at in range(found.end(), len(sql)):
        character = sql[at]
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += {"(": 1, ")": -1}.get(character, 0)
            if depth == 0:
                return CopyQuery(sql[found.end() : at], is_query=True, tail=sql[at + 1 :].strip().rstrip(";"))
    return None


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
    return text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text
