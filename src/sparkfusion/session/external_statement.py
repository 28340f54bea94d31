"""The parts of CREATE EXTERNAL TABLE, in any order. Comments and quoted text are never taken for SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sparkfusion.session.sql_text import closing_parenthesis, mask

_NAME = r"(?:\"(?:[^\"]|\"\")+\"|\w+)"
REFERENCE = re.compile(rf"{_NAME}(?:\.{_NAME})*")
"""The name of a table in SQL, with or without catalog and schema."""

_CREATE = re.compile(
    r"\s*CREATE\s+(?P<replaces>OR\s+REPLACE\s+)?(?P<unbounded>UNBOUNDED\s+)?EXTERNAL\s+TABLE\s+"
    rf"(?P<keeps>IF\s+NOT\s+EXISTS\s+)?(?P<name>{REFERENCE.pattern})\s*(?P<columns>\()?",
    re.IGNORECASE,
)
_STORED_AS = re.compile(r"\bSTORED\s+AS\s+(\w+)", re.IGNORECASE)
_LOCATION = re.compile(r"\bLOCATION\s+'([^']*)'", re.IGNORECASE)
_PARTITIONED_BY = re.compile(r"\bPARTITIONED\s+BY\s*\(", re.IGNORECASE)
_OPTIONS = re.compile(r"\bOPTIONS\s*\(", re.IGNORECASE)
_WITH_ORDER = re.compile(r"\bWITH\s+ORDER\b", re.IGNORECASE)
_PAIR = re.compile(r"\s*('(?:[^']|'')*'|[\w.:]+)\s+('(?:[^']|'')*'|[^\s,()']+)\s*,?")


@dataclass(frozen=True)
class ExternalStatement:
    """A statement that creates a table of files.

    Attributes:
        sql: the whole text.
        name: of the table, as it is written. `rest` is what follows it.
        stored_as: the format, as it is written.
        partitions, options: what stands in the parentheses of PARTITIONED BY and OPTIONS; empty without.
        keeps: IF NOT EXISTS. `replaces`: OR REPLACE.
    """

    sql: str
    name: str
    rest: str
    stored_as: str
    location: str
    partitions: str
    options: str
    replaces: bool
    keeps: bool
    unbounded: bool
    has_columns: bool
    has_order: bool

    @property
    def format(self) -> str:
        """The format, by the name that methods such as `register_json` have for it."""
        return {"ndjson": "json"}.get(self.stored_as.lower(), self.stored_as.lower())

    def pairs(self) -> list[tuple[str, str]]:
        """Names of options, without quotes, and their values as they are written."""
        return [(unquote(name), value) for name, value in _PAIR.findall(self.options)]

    def with_location(self, location: str) -> str:
        """The text with another location."""
        found = _LOCATION.search(mask(self.sql))
        assert found is not None
        quoted = location.replace("'", "''")
        return f"{self.sql[: found.start(1)]}{quoted}{self.sql[found.end(1) :]}"

    def without_option(self, option: str) -> ExternalStatement:
        """The statement without one of its options."""
        made = parse_external(cut_option(self.sql, option)[0])
        assert made is not None
        return made


def parse_external(sql: str) -> ExternalStatement | None:
    """The parts of the statement; None for any other.

    >>> made = parse_external("create external table t stored as CSV location 'it''s' -- (\\n options (a.b 'c)')")
    >>> made.name, made.format, made.location, made.pairs()
    ('t', 'csv', "it's", [('a.b', "'c)'")])
    """
    masked = mask(sql)
    created, stored, located = _CREATE.match(masked), _STORED_AS.search(masked), _LOCATION.search(masked)
    if created is None or stored is None or located is None:
        return None
    return ExternalStatement(
        sql=sql,
        name=sql[created.start("name") : created.end("name")],
        rest=sql[created.end("name") :],
        stored_as=stored[1],
        location=sql[located.start(1) : located.end(1)].replace("''", "'"),
        partitions=_inside(_PARTITIONED_BY, sql, masked),
        options=_inside(_OPTIONS, sql, masked),
        replaces=created["replaces"] is not None,
        keeps=created["keeps"] is not None,
        unbounded=created["unbounded"] is not None,
        has_columns=created["columns"] is not None,
        has_order=_WITH_ORDER.search(masked) is not None,
    )


def cut_option(text: str, option: str) -> tuple[str, str | None]:
    """A statement, or its end, without one of its OPTIONS, and the value of that option; None if it has no such option.

    Args:
        option: the name in lower case.

    >>> cut_option("to 'options (a 1)' stored as csv options (a 1, b.c 'a 2')", "a")
    ("to 'options (a 1)' stored as csv options (b.c 'a 2')", '1')
    """
    masked = mask(text)
    opening, whole = _OPTIONS.search(masked), _parentheses(_OPTIONS, masked)
    if opening is None or whole is None:
        return text, None
    cut = [pair for pair in _PAIR.finditer(text, opening.end(), whole[1] - 1) if unquote(pair[1]).lower() == option]
    if not cut:
        return text, None
    edges = [opening.end(), *(edge for pair in cut for edge in pair.span()), whole[1] - 1]
    kept = "".join(text[begin:end] for begin, end in zip(edges[::2], edges[1::2], strict=True))
    kept = kept.strip().removesuffix(",").rstrip()
    options = f"{opening[0]}{kept})" if kept else ""
    return f"{text[: whole[0]]}{options}{text[whole[1] :]}".rstrip(), unquote(cut[-1][2])


def unquote(text: str) -> str:
    """A text without the quotes that it may have in SQL.

    >>> unquote("'it''s'"), unquote("true")
    ("it's", 'true')
    """
    return text[1:-1].replace("''", "'") if text.startswith("'") else text


def _inside(opening: re.Pattern[str], sql: str, masked: str) -> str:
    found = opening.search(masked)
    whole = _parentheses(opening, masked)
    return sql[found.end() : whole[1] - 1] if found is not None and whole is not None else ""


def _parentheses(opening: re.Pattern[str], masked: str) -> tuple[int, int] | None:
    """Where the pattern begins that opens parentheses, and where these end."""
    found = opening.search(masked)
    closing = closing_parenthesis(masked, found.end()) if found is not None else None
    return (found.start(), closing + 1) if found is not None and closing is not None else None
