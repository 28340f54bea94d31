"""CREATE EXTERNAL TABLE … OPTIONS ('sparkfusion.on_error' 'skip'): a table whose bad lines are left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from datafusion import SessionContext
from datafusion.options import CsvReadOptions

from sparkfusion.errors import UserError, clean_message
from sparkfusion.feed.feed import WorkUnitFeed
from sparkfusion.session.external_statement import ExternalStatement, unquote
from sparkfusion.session.feed_tables import FeedTables
from sparkfusion.session.skipping import skipping_table

OPTION = "sparkfusion.on_error"
_FLAGS = {"has_header", "truncated_rows"}
_TEXTS = {"delimiter", "quote", "escape", "comment"}
_COUNTS = {"schema_infer_max_rec": "schema_infer_max_records"}


@dataclass(frozen=True)
class OnErrorStatement:
    """A statement with our option. `plain` is the statement without it, as DataFusion takes it."""

    on_error: str
    plain: ExternalStatement


def parse_on_error(statement: ExternalStatement | None) -> OnErrorStatement | None:
    """The statement, if it creates an external table and says what to do with lines that cannot be read.

    >>> from sparkfusion.session.external_statement import parse_external
    >>> text = "create external table t stored as csv location 'x' options ('sparkfusion.on_error' 'skip')"
    >>> parse_on_error(parse_external(text)).plain.sql
    "create external table t stored as csv location 'x'"
    """
    if statement is None or statement.unbounded:
        return None
    said = [unquote(value).lower() for name, value in statement.pairs() if name.lower() == OPTION]
    return OnErrorStatement(said[-1], statement.without_option(OPTION)) if said else None


def create_skipping_table(
    context: SessionContext, statement: ExternalStatement, feeds: FeedTables, prepare: Callable[[SessionContext], None]
) -> None:
    """Register the table that the statement describes. `prepare` gives a context the session's object stores."""
    if context.table_exist(statement.name):
        if statement.keeps:
            return
        if not statement.replaces:
            raise UserError(
                f"table {statement.name} exists already", hint="CREATE OR REPLACE EXTERNAL TABLE replaces it"
            )
    if statement.partitions:
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


def _arguments(statement: ExternalStatement) -> dict[str, Any]:
    """What the statement says, as arguments of `register_csv` or `register_json`."""
    options = {name.lower(): unquote(value) for name, value in statement.pairs()}
    said: dict[str, Any] = {}
    for option, value in options.items():
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
