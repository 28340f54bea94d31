"""`on_error="skip"`: tables of CSV and JSON files whose unreadable lines are skipped.

DataFusion has no such mode. The table is a feed of files. Tasks read them line by line, with DataFusion's own readers.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
from datafusion import SessionContext
from datafusion.options import CsvReadOptions

from sparkfusion.errors import UserError
from sparkfusion.feed.ready.files import Files
from sparkfusion.feed.ready.hive import HiveColumn
from sparkfusion.feed.ready.lines import LineReader, first_rows
from sparkfusion.feed.ready.sieve import LineFormat, open_sieve
from sparkfusion.session.feed_options import FeedOptions
from sparkfusion.session.file_arguments import FileArguments, with_csv_options
from sparkfusion.session.file_tables import METHOD_FORMATS, OLD_TYPES, arrange

_CHOICES = ("fail", "skip")
_LINE_FORMATS = ("csv", "json")
_ACROSS_LINES = ("newlines_in_values", "terminator")
_GLOB = frozenset("*?[")


def check_on_error(on_error: object, format: str | None) -> bool:
    """Whether lines that cannot be read are skipped."""
    if on_error not in _CHOICES:
        raise UserError(f"unknown on_error {on_error!r}", hint=f"one of {', '.join(_CHOICES)}")
    if on_error == "skip" and format not in _LINE_FORMATS:
        raise UserError(f"on_error='skip' is for lines of CSV and JSON, not for {format or 'a reader'}")
    return on_error == "skip"


def skip_lines(options: FeedOptions) -> FeedOptions:
    """The options of a feed of CSV or JSON files that skips lines."""
    assert options.format is not None
    partitions = set(options.partition_columns)
    schema = pa.schema([field for field in options.schema if field.name not in partitions])
    reader = LineReader(line_format(options.format, options.options), schema)
    return replace(options, format=None, reader=reader, partition_columns=(), options={})


def line_format(format: str, given: Mapping[str, Any]) -> LineFormat:
    """The format that the arguments of `register_csv` or `register_json` describe."""
    arguments = with_csv_options(f"register_{format}", given)
    settings = FileArguments(f"register_{format}", arguments)
    if settings.get("file_compression_type"):
        raise UserError("on_error='skip' does not read compressed files", hint="unpack them")
    if format == "json":
        return LineFormat()
    options: CsvReadOptions = copy.copy(arguments["options"])
    for name in _ACROSS_LINES:
        if getattr(options, name):
            raise UserError(
                f"{name} and on_error='skip' cannot be combined: after a line that cannot be read, it is not known "
                "where the next row begins",
                hint="on_error='skip' reads each line as a row",
            )
    options.schema = None
    return LineFormat(options)


def skipping_table(
    method: str, given: Mapping[str, Any], prepare: Callable[[SessionContext], None], *, hive: bool
) -> tuple[Files, FeedOptions]:
    """The feed that stands for a table of `register_csv`, `read_json` and the like.

    Args:
        given: the arguments of the method. `prepare`: gives a context the session's object stores.
        hive: whether directories give columns.
    """
    kind = METHOD_FORMATS[method]
    ending = FileArguments(method, with_csv_options(method, given)).extension
    arranged = arrange(method, given, prepare, hive=hive)
    settings = FileArguments(method, arranged.arguments)
    format = line_format(
        kind, {name: each for name, each in arranged.arguments.items() if name not in ("name", "path")}
    )
    said: list[tuple[str, Any]] = settings.partitions or []
    columns: list[HiveColumn] = [(name, OLD_TYPES.get(type, type)) for name, type in said]
    columns = [(column.name, column.type) for column in arranged.columns] or columns
    paths = _paths(given["path"], ending, nested=bool(columns))
    files = Files(paths, format=kind, recursive=bool(columns), hive=columns or False)
    schema = settings.get("schema")
    if schema is None:
        most = settings.get("schema_infer_max_records")
        schema = _guess(method, arranged.of_files_alone(), prepare) or _guess_from_first(files, format, most or 1000)
        if kind == "json":
            schema = _numbers_that_prevail(schema, files, format, most or 1000)
    names = {name for name, _ in columns}
    plain = [field for field in schema if field.name not in names]
    table = [field.with_nullable(True) for field in plain] + [pa.field(*column) for column in columns]
    return files, FeedOptions(pa.schema(table), reader=LineReader(format, pa.schema(plain)))


def _paths(path: Any, ending: str | None, *, nested: bool) -> Any:
    """A directory with files of another extension, as a glob."""
    if ending and isinstance(path, str | PathLike) and Path(path).is_dir() and not _GLOB & set(str(path)):
        return f"{str(path).rstrip('/')}/{'**/' if nested else ''}*{ending}"
    return path


def _guess(method: str, arguments: dict[str, Any], prepare: Callable[[SessionContext], None]) -> pa.Schema | None:
    """The schema that DataFusion guesses from all files; None if it cannot, which is why lines are skipped."""
    context = SessionContext()
    prepare(context)
    arguments = {name: value for name, value in arguments.items() if name != "name"}
    try:
        return getattr(context, f"read_{METHOD_FORMATS[method]}")(**arguments).schema()
    except Exception:
        return None


def _numbers_that_prevail(schema: pa.Schema, files: Files, format: LineFormat, most: int) -> pa.Schema:
    """The guessed schema of JSON files, with numbers where DataFusion guesses texts although most values are numbers.

    DataFusion's JSON reader does not read a number as a text: in a column with one text among numbers it would skip the
    numbers.
    """
    if pa.string() not in schema.types:
        return schema
    with files.open(files.first_path()) as file:
        rows = [row for line in first_rows(file, format, most) if isinstance(row := _parse_json(line), dict)]
    fields = []
    for field in schema:
        values = [value for row in rows if (value := row.get(field.name)) is not None]
        numbers = [value for value in values if type(value) in (int, float)]
        if field.type == pa.string() and 2 * len(numbers) > len(values):
            whole = all(type(value) is int for value in numbers)
            fields.append(field.with_type(pa.int64() if whole else pa.float64()))
        else:
            fields.append(field)
    return pa.schema(fields)


def _parse_json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _guess_from_first(files: Files, format: LineFormat, most: int) -> pa.Schema:
    path = files.first_path()
    with files.open(path) as file:
        lines = first_rows(file, format, most)
    try:
        with open_sieve(format) as sieve:
            return sieve.guess(lines)
    except Exception as error:
        raise UserError(
            f"cannot guess the columns of {path!r}: {error}", hint="pass schema=pyarrow.schema([…])"
        ) from error
