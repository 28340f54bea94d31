"""CREATE EXTERNAL TABLE over directories that other programs wrote: with `_SUCCESS`, `.crc` files, NULL partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import InternalError, UserError
from sparkfusion.feed.ready.hive import NULL_VALUE
from sparkfusion.feed.ready.patterns import is_hidden
from sparkfusion.session.external_statement import ExternalStatement, parse_external
from sparkfusion.session.feed_tables import FeedTables
from sparkfusion.session.file_tables import show_partitions, visible_files
from sparkfusion.session.layout import PartitionColumn, find_unreadable, list_files, listing_context
from sparkfusion.session.skipping import check_on_error
from sparkfusion.session.skipping_statement import create_skipping_table, parse_on_error
from sparkfusion.session.unfit_files import ONE_PER_LINE, check_not_empty, find_array, finds_no_files, no_files
from sparkfusion.urls import is_url, plain_path

_TOLD_APART = ("parquet", "arrow", "avro")
_NO_ROWS = "SELECT NULL LIMIT 0"
T = TypeVar("T")


def run_statement(
    context: SessionContext,
    sql: str,
    run: Callable[[str], T],
    prepare: Callable[[SessionContext], None],
    feeds: FeedTables,
) -> T:
    """Run any statement. If it creates a table over a directory, the table reads no hidden files, and its NULL
    partitions are NULL. If the statement asks for it, lines that cannot be read are skipped.

    Args:
        prepare: gives a context the session's object stores.
        feeds: the session's.
    """
    statement = parse_external(sql)
    said = parse_on_error(statement)
    if said is not None:
        statement = said.plain
        if check_on_error(said.on_error, statement.format):
            create_skipping_table(context, statement, feeds, prepare)
            return run(_NO_ROWS)
    if statement is None or statement.unbounded or (statement.keeps and context.table_exist(statement.name)):
        return run(sql if statement is None else statement.sql)
    if not statement.has_columns:
        check_not_empty(statement.location, statement.format)
    files = _list_files(statement.location, prepare)
    with _name_damaged_file(statement, files):
        made = _create(statement, run, hidden=any(is_hidden(file.rpartition("/")[2]) for file in files))
    columns = _null_columns(files)
    if columns:
        _show_nulls(context, statement.name, columns)
    return made


@contextmanager
def _name_damaged_file(statement: ExternalStatement, files: list[str]) -> Iterator[None]:
    """Add the file's name to an error about one of several files of this machine, and to a panic."""
    try:
        yield
    except (UserError, InternalError) as error:
        if finds_no_files(error):
            raise no_files(statement.location, statement.format) from error
        if statement.format == "json" and (array := find_array([f"/{file}" for file in files])) is not None:
            raise UserError(array, hint=ONE_PER_LINE) from error
        if statement.format not in _TOLD_APART or is_url(statement.location):
            raise
        read = getattr(SessionContext(), f"read_{statement.format}")
        visible = [f"/{file}" for file in files if not is_hidden(file.rpartition("/")[2])]
        unnamed = len(visible) > 1 or isinstance(error, InternalError)
        found = find_unreadable(visible, lambda file: read(file).schema()) if unnamed else None
        if found is None:
            raise
        raise UserError(found, hint="remove or replace the file") from error


def _create(statement: ExternalStatement, run: Callable[[str], T], *, hidden: bool) -> T:
    """Create the table over the visible files if hidden files would be read, or if an empty `_SUCCESS` stops
    DataFusion. Otherwise over the directory, because INSERT needs one."""
    visible = visible_files(statement.location) if Path(plain_path(statement.location)).is_dir() else None
    of_visible = statement.with_location(visible) if visible is not None else None
    if hidden and of_visible is not None:
        return run(of_visible)
    try:
        return run(statement.sql)
    except UserError:
        if of_visible is not None:
            with suppress(UserError):
                return run(of_visible)
        raise


def _list_files(location: str, prepare: Callable[[SessionContext], None]) -> list[str]:
    """The files at a location; none if DataFusion cannot list it: the statement will say why."""
    context = listing_context()
    try:
        prepare(context)
        return list_files(context, location, "")
    except Exception:
        return []


def _null_columns(files: list[str]) -> set[str]:
    directories = {directory for file in files for directory in file.split("/")[:-1]}
    return {directory.partition("=")[0] for directory in directories if directory.endswith(f"={NULL_VALUE}")}


def _show_nulls(context: SessionContext, name: str, nullable: set[str]) -> None:
    """Replace the table by a view in which these partition columns may be NULL."""
    dataframe = context.table(name)
    columns = [each for each in dataframe.schema() if each.name in nullable]
    for column in columns:
        if not is_text(column.type):
            context.deregister_table(name)
            raise UserError(
                f"cannot create table {name}: partition column {column.name!r} is {column.type}, and a directory "
                f"{column.name}={NULL_VALUE} means NULL",
                hint="declare the column as a string, or use session.register_parquet and the like",
            )
    context.deregister_table(name)
    shown = tuple(PartitionColumn(column.name, column.name, column.type) for column in columns)
    context.register_view(name, show_partitions(dataframe, shown))


def is_text(type: pa.DataType) -> bool:
    """Whether the column may hold the name of a directory for NULL."""
    plain = type.value_type if pa.types.is_dictionary(type) else type
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain))
