"""Tables of files: arguments that `register_parquet`, `read_csv` and similar methods were not given are read from the
files.

Partition columns come from directories `name=value`, and the extension and the compression from the files' names.
Hidden files are left out. If a directory means NULL, the table is a view over DataFusion's table, so that queries see
NULL; conditions on the view still prune directories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
from datafusion import SessionContext, functions

from sparkfusion.errors import InternalError, UserError, panics_as_errors
from sparkfusion.feed.ready.hive import NULL_VALUE
from sparkfusion.formats import FORMATS, ending_of, format_of
from sparkfusion.session.file_arguments import FileArguments, with_csv_options
from sparkfusion.session.layout import (
    Layout,
    PartitionColumn,
    describe_drift,
    find_unreadable,
    list_files,
    listing_context,
    survey,
)
from sparkfusion.session.sql_names import quote_name
from sparkfusion.session.unfit_files import ONE_PER_LINE, check_not_empty, find_array, finds_no_files, no_files
from sparkfusion.urls import is_url, plain_path, url_scheme

METHOD_FORMATS: dict[str, str] = {f"{verb}_{format}": format for verb in ("register", "read") for format in FORMATS}
METHOD_FORMATS["register_listing_table"] = "parquet"

OLD_TYPES = {"string": pa.string(), "int": pa.int32()}
_VISIBLE = "[!_.]*"
_GLOB = frozenset("*?[")
_PLAIN = pa.string()


@dataclass(frozen=True)
class Arrangement:
    """The arguments that DataFusion gets, and the columns whose values have to be parsed from text."""

    method: str
    arguments: dict[str, Any]
    columns: tuple[PartitionColumn, ...] = ()

    def expose(self, dataframe: datafusion.DataFrame) -> datafusion.DataFrame:
        """A DataFrame of the files with partition columns as a user sees them: typed, and with NULLs."""
        return show_partitions(dataframe, self.columns)

    def of_files_alone(self) -> dict[str, Any]:
        """Arguments to read the files without partition columns."""
        arguments = with_csv_options(self.method, self.arguments)
        FileArguments(self.method, arguments).set_partitions([])
        return arguments

    def with_schema(self, schema: pa.Schema) -> Arrangement:
        """The same for files that have their partition columns too, in this schema. The directories' values count."""
        twice = ", ".join(repr(column.name) for column in self.columns if column.name in schema.names)
        if twice and METHOD_FORMATS[self.method] == "csv":
            raise UserError(
                f"column {twice} is in the files as well as in the names of their directories",
                hint="hive=False reads it from the files",
            )
        arguments = with_csv_options(self.method, self.arguments)
        settings = FileArguments(self.method, arguments)
        settings.put("schema", schema)
        settings.drop_from_schema({column.name for column in self.columns})
        return Arrangement(self.method, arguments, self.columns)


def show_partitions(dataframe: datafusion.DataFrame, columns: tuple[PartitionColumn, ...]) -> datafusion.DataFrame:
    """The DataFrame with these columns as their types, and NULL if a directory says so."""
    shown = {column.spelled: column for column in columns}
    made = []
    for name in dataframe.schema().names:
        own = datafusion.col(quote_name(name))
        if name in shown:
            text = functions.nullif(own.cast(_PLAIN), datafusion.lit(NULL_VALUE))
            own = text.cast(shown[name].type).alias(shown[name].name)
        made.append(own)
    return dataframe.select(*made)


def arrange(
    method: str, given: Mapping[str, Any], prepare: Callable[[SessionContext], None], *, hive: bool
) -> Arrangement:
    """Complete the arguments of a method of `METHOD_FORMATS`.

    Args:
        given: those of the user. `prepare`: gives a context the session's object stores.
        hive: whether directories give columns.
    """
    format, arguments = METHOD_FORMATS[method], with_csv_options(method, given)
    settings = FileArguments(method, arguments)
    if settings.get("schema") is None:
        check_not_empty(arguments["path"], format)
    said = settings.partitions
    layout = _look(format, settings, prepare, hive=hive and not said)
    if settings.extension is None and layout.extension is not None:
        settings.put("file_extension", layout.extension)
    if format in ("csv", "json") and layout.compression is not None and not settings.get("file_compression_type"):
        settings.put("file_compression_type", layout.compression)
    if layout.has_hidden and (visible := visible_files(arguments["path"])) is not None:
        arguments["path"] = visible
    if said:
        if not layout.has_nulls:
            return Arrangement(method, arguments)
        columns = tuple(PartitionColumn(name, name, OLD_TYPES.get(type, type)) for name, type in said)
    else:
        columns = layout.columns
    if columns:
        settings.set_partitions([(column.spelled, _PLAIN) for column in columns])
        settings.drop_from_schema({column.name for column in columns})
    return Arrangement(method, arguments, columns)


@contextmanager
def explain_drift(arranged: Arrangement) -> Iterator[None]:
    """Add file names to an error about the files' schemas: two files that cannot be combined, or one that cannot be
    read. Only files of this machine are checked. A panic becomes an error, because a damaged file can cause one."""
    try:
        with panics_as_errors():
            yield
    except Exception as error:
        path, format = arranged.arguments["path"], METHOD_FORMATS[arranged.method]
        if finds_no_files(error):
            raise no_files(str(path).removesuffix(f"/{_VISIBLE}") if isinstance(path, str) else path, format) from error
        if any(url_scheme(str(each)) for each in (path if isinstance(path, list | tuple) else [path])):
            raise
        files, read = _one_by_one(arranged)
        if format == "json" and (array := find_array(files)) is not None:
            raise UserError(array, hint=ONE_PER_LINE) from error
        found = describe_drift(files, read) if "Fail to merge schema" in str(error) else None
        if found is not None:
            raise UserError(found, hint="read the files separately, or give the columns with schema=…") from error
        unnamed = len(files) > 1 or isinstance(error, InternalError)
        if unnamed and (damaged := find_unreadable(files, read)) is not None:
            raise UserError(damaged, hint="remove or replace the file") from error
        raise


def _one_by_one(arranged: Arrangement) -> tuple[list[str], Callable[[str], pa.Schema]]:
    """The files, and a function that reads the schema of one."""
    path, format = arranged.arguments["path"], METHOD_FORMATS[arranged.method]
    extension = FileArguments(arranged.method, arranged.arguments).extension or f".{format}"
    files = [f"/{file}" for file in list_files(listing_context(), path, extension)]

    def read(file: str) -> pa.Schema:
        arguments = FileArguments(arranged.method, {**arranged.of_files_alone(), "path": file}).arguments
        arguments.pop("name", None)
        return getattr(SessionContext(), f"read_{format}")(**arguments).schema()

    return files, read


def register_files(context: SessionContext, register: Callable[..., None], arranged: Arrangement) -> dict[str, Any]:
    """Register the table, as a view if its partition columns need one. Returns what DataFusion got."""
    name = arranged.arguments["name"]
    with explain_drift(arranged):
        register(context, **arranged.arguments)
    if not arranged.columns:
        return arranged.arguments
    try:
        dataframe = context.table(name)
    except Exception:
        context.deregister_table(name)
        register(context, **arranged.of_files_alone())
        schema = context.table(name).schema()
        context.deregister_table(name)
        arranged = arranged.with_schema(schema)
        register(context, **arranged.arguments)
        dataframe = context.table(name)
    context.deregister_table(name)
    context.register_view(name, arranged.expose(dataframe))
    return arranged.arguments


def read_files(
    context: SessionContext, read: Callable[..., datafusion.DataFrame], arranged: Arrangement
) -> tuple[datafusion.DataFrame, dict[str, Any]]:
    """A DataFrame of the files, and what DataFusion got."""
    try:
        with explain_drift(arranged):
            dataframe = read(context, **arranged.arguments)
    except Exception:
        if not arranged.columns:
            raise
        arranged = arranged.with_schema(read(context, **arranged.of_files_alone()).schema())
        dataframe = read(context, **arranged.arguments)
    return arranged.expose(dataframe) if arranged.columns else dataframe, arranged.arguments


def _look(format: str, settings: FileArguments, prepare: Callable[[SessionContext], None], *, hive: bool) -> Layout:
    path = settings.arguments["path"]
    if isinstance(path, str | PathLike) and _is_file(str(path)):
        extension, compression = ending_of(str(path))
        return Layout(extension, compression)
    context = listing_context()
    prepare(context)
    known = settings.get("schema")
    listed = list_files(context, path, settings.extension or "", settings.arguments.get("object_store"))
    return survey(listed, path, None if settings.extension is not None else format, known=known, hive=hive)


def _is_file(path: str) -> bool:
    """Whether a path names one file; for a URL, its extension decides."""
    return format_of(path) is not None and not path.endswith("/") if is_url(path) else Path(plain_path(path)).is_file()


def visible_files(path: Any) -> str | None:
    """A directory of this machine as a glob of its visible files; None if no glob can express it."""
    if not isinstance(path, str | PathLike) or is_url(str(path)):
        return None
    directory = plain_path(str(path)).rstrip("/")
    return None if _GLOB & set(directory) else f"{directory}/{_VISIBLE}"
