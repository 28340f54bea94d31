"""CREATE EXTERNAL TABLE … OPTIONS ('sparkfusion.on_error' 'skip'): a table whose bad lines are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from datafusion import SessionContext
from datafusion.options import CsvReadOptions

from sparkfusion.errors import UserError, clean_message
from sparkfusion.feed.feed import WorkUnitFeed
from sparkfusion.session.feed_tables import FeedTables
from sparkfusion.session.skipping import skipping_table
from sparkfusion.session.sql_text import closing_parenthesis, mask

OPTION = "sparkfusion.on_error"
_NAME = r"(?:\"[^\"]+\"|\w+)(?:\.(?:\"[^\"]+\"|\w+))*"
_CREATE = re.compile(
    rf"\s*CREATE\s+(?P<replaces>OR\s+REPLACE\s+)?EXTERNAL\s+TABLE\s+(?P<keeps>IF\s+NOT\s+EXISTS\s+)?(?P<name>{_NAME})"
    r"\s*(?P<columns>\()?",
    re.IGNORECASE,
)
_OPTIONS = re.compile(r"\bOPTIONS\s*\(", re.IGNORECASE)
_STORED_AS = re.compile(r"\bSTORED\s+AS\s+(\w+)", re.IGNORECASE)
_LOCATION = re.compile(r"\bLOCATION\s+('[^']*')", re.IGNORECASE)
_PARTITIONED = re.compile(r"\bPARTITIONED\s+BY\b", re.IGNORECASE)
_PAIR = re.compile(r"\s*('(?:[^']|'')*'|[\w.:]+)\s+('(?:[^']|'')*'|[^\s,()']+)\s*,?")
_FLAGS = {"has_header", "truncated_rows"}
_TEXTS = {"delimiter", "quote", "escape", "comment"}
_COUNTS = {"schema_infer_max_rec": "schema_infer_max_records"}


@dataclass(frozen=True)
class OnErrorStatement:
    """A statement with our option.

    Attributes:
        plain: without the option, as DataFusion takes it.
        rest: what follows the table's name in it.
        options: the others, by their names in lower case.
    """

    on_error: str
    plain: str
    name: str
    rest: str
    format: str
    location: str
    options: Mapping[str, str]
    has_columns: bool
    has_partitions: bool
    replaces: bool
    keeps: bool


def parse_on_error(sql: str) -> OnErrorStatement | None:
    """The statement, if it creates an external table and says what to do with lines that cannot be read.

    >>> text = "create external table t stored as csv location 'x' options ('sparkfusion.on_error' 'skip')"
    >>> parse_on_error(text).plain
    "create external table t stored as csv location 'x' "
    """
    masked = mask(sql)
    created, begin = _CREATE.match(masked), _OPTIONS.search(masked)
    stored, located = _STORED_AS.search(masked), _LOCATION.search(masked)
    end = closing_parenthesis(masked, begin.end()) if begin is not None else None
    if created is None or begin is None or end is None or stored is None or located is None:
        return None
    pairs = [(_plain(name), value) for name, value in _PAIR.findall(sql[begin.end() : end])]
    options = {name.lower(): _plain(value) for name, value in pairs}
    if OPTION not in options:
        return None
    others = ", ".join(f"'{name}' {value}" for name, value in pairs if name.lower() != OPTION)
    plain = sql[: begin.start()] + (f"OPTIONS ({others})" if others else "") + sql[end + 1 :]
    return OnErrorStatement(
        on_error=options.pop(OPTION).lower(),
        plain=plain,
        name=sql[created.start("name") : created.end("name")],
        rest=plain[created.end("name") :],
        format={"ndjson": "json"}.get(stored[1].lower(), stored[1].lower()),
        location=_plain(sql[located.start(1) : located.end(1)]),
        options=options,
        has_columns=created["columns"] is not None,
        has_partitions=_PARTITIONED.search(masked) is not None,
        replaces=created["replaces"] is not None,
        keeps=created["keeps"] is not None,
    )


def create_skipping_table(
    context: SessionContext, statement: OnErrorStatement, feeds: FeedTables, prepare: Callable[[SessionContext], None]
) -> None:
    """Register the table that the statement describes.

    Args:
        feeds: those of the session. `prepare`: gives a context its object stores.
    """
    if context.table_exist(statement.name):
        if statement.keeps:
            return
        if not statement.replaces:
            raise UserError(
                f"table {statement.name} exists already", hint="CREATE OR REPLACE EXTERNAL TABLE replaces it"
            )
    if statement.has_partitions:
        raise UserError(
            f"cannot create table {statement.name}: PARTITIONED BY and on_error 'skip' cannot be combined",
            hint="leave it out: directories name=value give the table's last columns",
        )
    method = f"register_{statement.format}"
    try:
        files, options = skipping_table(method, _arguments(statement), prepare, hive=True)
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"cannot create table {statement.name}: {clean_message(error)}") from error
    if statement.replaces:
        context.deregister_table(statement.name)
    feeds.register(context, statement.name, WorkUnitFeed(files), options)


def _arguments(statement: OnErrorStatement) -> dict[str, Any]:
    """What the statement says, as arguments of `register_csv` or `register_json`."""
    said: dict[str, Any] = {}
    for option, value in statement.options.items():
        name = option.removeprefix("format.")
        if name in _COUNTS:
            said[_COUNTS[name]] = int(value)
        elif statement.format == "csv" and name in _FLAGS:
            said[name] = value.lower() == "true"
        elif statement.format == "csv" and name in _TEXTS:
            said[name] = value
        else:
            raise UserError(
                f"cannot create table {statement.name}: option {option!r} and on_error 'skip' cannot be combined"
            )
    if statement.has_columns:
        apart = SessionContext()
        apart.sql(f"CREATE EXTERNAL TABLE t{statement.rest}")
        said["schema"] = apart.table("t").schema()
    given = {"name": statement.name, "path": statement.location}
    return given | ({"options": CsvReadOptions(**said)} if statement.format == "csv" else said)


def _plain(text: str) -> str:
    return text[1:-1].replace("''", "'") if text.startswith("'") else text
