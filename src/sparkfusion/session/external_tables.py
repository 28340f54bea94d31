"""CREATE EXTERNAL TABLE over directories as writers leave them: with `_SUCCESS`, `.crc` files, NULL partitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import UserError
from sparkfusion.feed.ready.hive import NULL_VALUE
from sparkfusion.feed.ready.patterns import is_hidden
from sparkfusion.session.feed_tables import FeedTables
from sparkfusion.session.file_tables import show_partitions, visible_files
from sparkfusion.session.layout import PartitionColumn, find_unreadable, list_files, listing_context
from sparkfusion.session.skipping import check_on_error
from sparkfusion.session.skipping_statement import create_skipping_table, parse_on_error

_NAME = r"(?:\"(?:[^\"]|\"\")+\"|\w+)"
_CREATE = re.compile(
    rf"\s*CREATE\s+(?:OR\s+REPLACE\s+)?EXTERNAL\s+TABLE\s+(IF\s+NOT\s+EXISTS\s+)?({_NAME}(?:\.{_NAME})*)",
    re.IGNORECASE,
)
_LOCATION = re.compile(r"\bLOCATION\s+'((?:[^']|'')*)'", re.IGNORECASE)
_STORED_AS = re.compile(r"\bSTORED\s+AS\s+(PARQUET|ARROW|AVRO)\b", re.IGNORECASE)
_NO_ROWS = "SELECT NULL LIMIT 0"
QUOTE = "'"
T = TypeVar("T")


def run_statement(
    context: SessionContext,
    sql: str,
    run: Callable[[str], T],
    prepare: Callable[[SessionContext], None],
    feeds: FeedTables,
) -> T:
    """Run any statement. If it creates a table over a directory, the table reads no hidden file, and its NULL
    partitions are NULL. If it says so, lines that cannot be read are left out.

    Args:
        prepare: gives a context the session's object stores.
        feeds: the session's.
    """
    said = parse_on_error(sql)
    if said is not None and check_on_error(said.on_error, said.format):
        create_skipping_table(context, said, feeds, prepare)
        return run(_NO_ROWS)
    sql = said.plain if said is not None else sql
    created, located = _CREATE.match(sql), _LOCATION.search(sql)
    if created is None or located is None or (created[1] is not None and context.table_exist(created[2])):
        return run(sql)
    location = located[1].replace("''", "'")
    files = _list_files(location, prepare)
    glob = visible_files(location) if Path(location).is_dir() else None
    with _damage_named(sql, location, files):
        if glob is None:
            made = run(sql)
        else:
            text = f"{sql[: located.start(1)]}{glob.replace(QUOTE, QUOTE * 2)}{sql[located.end(1) :]}"
            made = _create(sql, text, run, hidden=any(is_hidden(file.rpartition("/")[2]) for file in files))
    columns = _null_columns(files)
    if columns:
        _show_nulls(context, created[2], columns)
    return made


@contextmanager
def _damage_named(sql: str, location: str, files: list[str]) -> Iterator[None]:
    """Let an error about one of several files of this machine name the file."""
    try:
        yield
    except UserError as error:
        stored = _STORED_AS.search(sql)
        if stored is None or "://" in location:
            raise
        read = getattr(SessionContext(), f"read_{stored[1].lower()}")
        visible = [f"/{file}" for file in files if not is_hidden(file.rpartition("/")[2])]
        found = find_unreadable(visible, lambda file: read(file).schema()) if len(visible) > 1 else None
        if found is None:
            raise
        raise UserError(found, hint="remove or replace the file") from error


def _create(sql: str, of_visible: str, run: Callable[[str], T], *, hidden: bool) -> T:
    """Over visible files if hidden ones would be read, or if an empty `_SUCCESS` is in DataFusion's way. Else over the
    directory: INSERT needs one."""
    if hidden:
        return run(of_visible)
    try:
        return run(sql)
    except UserError:
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
    """Make a view of the table, in which these partition columns may be NULL."""
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
