"""What is in the directory of a table: the extension of its files, which directories are partitions, what is hidden.

DataFusion lists the files, so this works with every object store. Their names are interpreted as in `feeds.Files`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from sparkfusion.errors import UserError, clean_message, panics_as_errors
from sparkfusion.feed.ready.hive import NULL_VALUE, infer_type, partition_of
from sparkfusion.feed.ready.patterns import is_hidden, split_glob
from sparkfusion.formats import ending_of, format_of
from sparkfusion.plan.wire import decode, file_scan_conf, walk
from sparkfusion.urls import decoded_path, url_scheme

TablePaths = str | PathLike[str] | Sequence[str | PathLike[str]]
_ANY_COLUMN = pa.schema([("line", pa.string())])


@dataclass(frozen=True)
class PartitionColumn:
    """A column whose values are in directory names. `spelled` is its name there: DataFusion compares that."""

    spelled: str
    name: str
    type: pa.DataType


@dataclass(frozen=True)
class Layout:
    """What a listing of its files shows about a table.

    Attributes:
        extension: the extension of the table's files; None if there is no file.
        compression: the compression of all of them.
        has_nulls: whether a directory means NULL.
        has_hidden: whether DataFusion lists files that are hidden, such as `_SUCCESS`.
    """

    extension: str | None = None
    compression: str | None = None
    columns: tuple[PartitionColumn, ...] = ()
    has_nulls: bool = False
    has_hidden: bool = False


def list_files(context: SessionContext, paths: TablePaths, extension: str, object_store: Any = None) -> list[str]:
    """The files, as DataFusion lists them. No file is read."""
    several: Any = [str(path) for path in paths] if isinstance(paths, list | tuple) else str(paths)
    context.register_csv("listed", several, _ANY_COLUMN, file_extension=extension, object_store=object_store)
    encoded = context.table("listed").execution_plan().to_bytes(context)
    confs = [conf for node in walk(decode(encoded)) if (conf := file_scan_conf(node)) is not None]
    return [file.path for conf in confs for group in conf.file_groups for file in group.files]


def listing_context() -> SessionContext:
    return SessionContext(SessionConfig().with_target_partitions(1).with_repartition_file_scans(enabled=False))


def has_files(prepare: Callable[[SessionContext], None], path: str) -> bool:
    """Whether there is a file at a path, or below it."""
    context = listing_context()
    prepare(context)
    return bool(list_files(context, path, ""))


def survey(
    files: Sequence[str], paths: TablePaths, format: str | None, *, known: pa.Schema | None = None, hive: bool = True
) -> Layout:
    """What the names of a table's files show about it.

    Args:
        format: only files with its extension count; None takes all files.
        known: types of partition columns; others are int64 if all their values are integers, otherwise strings.
        hive: whether to look for partition columns. All files must have the same ones.
    """
    shown = [file for file in files if not is_hidden(_name(file))]
    of_format = [file for file in shown if format is None or format_of(file) == format]
    endings = {ending_of(_name(file)) for file in of_format}
    extension, compression = _common_ending(endings, len(shown) == len(of_format), paths)
    roots = _roots(paths)
    directories = {file: _partitions(file, roots) for file in of_format}
    values = _agree(directories) if hive else {}
    types = {field.name: field.type for field in known} if known is not None else {}
    columns = []
    for name, found in values.items():
        plain = unquote(name)
        columns.append(PartitionColumn(name, plain, types.get(plain, infer_type(found))))
    return Layout(
        extension,
        compression,
        tuple(columns),
        has_nulls=any(each.endswith(f"={NULL_VALUE}") for found in directories.values() for each in found),
        has_hidden=any(is_hidden(_name(file)) for file in files),
    )


def _common_ending(
    endings: set[tuple[str, str | None]], only_these: bool, paths: TablePaths
) -> tuple[str | None, str | None]:
    if not endings:
        return None, None
    if len(endings) == 1:
        return next(iter(endings))
    compressions = {compression for _, compression in endings}
    if only_these and len(compressions) == 1:
        return "", next(iter(compressions))
    shown = sorted(ending for ending, _ in endings)
    raise UserError(
        f"the files of {str(paths)!r} have different extensions, and a table has only one: "
        f"{', '.join(map(repr, shown))}",
        hint=f"read them separately with patterns such as {f'*{shown[0]}'!r}, and put them together with UNION ALL",
    )


def _agree(spelled: dict[str, list[str]]) -> dict[str, list[str | None]]:
    """The values of each partition column, by the name that directories give it; every file must have the same."""
    values: dict[str, list[str | None]] = {}
    first: tuple[str, list[str]] | None = None
    for file, directories in spelled.items():
        names = [directory.partition("=")[0] for directory in directories]
        first = first or (file, names)
        if names != first[1]:
            raise UserError(
                f"{file!r} has the partition columns {', '.join(names) or 'none'}; "
                f"{first[0]!r} has {', '.join(first[1]) or 'none'}",
                hint="hive=False reads all files and ignores such directories",
            )
        for name, directory in zip(names, directories, strict=True):
            own = partition_of(directory)
            assert own is not None
            values.setdefault(name, []).append(own[1])
    return values


def _partitions(file: str, roots: list[str]) -> list[str]:
    """The directories `name=value` between a table's directory and a file."""
    for root in roots:
        if file.startswith(f"{root}/") or not root:
            between = file.removeprefix(root).strip("/").split("/")[:-1]
            return [directory for directory in between if partition_of(directory) is not None]
    return []


def _roots(paths: TablePaths) -> list[str]:
    """The directories of paths, as an object store spells them, without the parts of a glob."""
    found = []
    for path in paths if isinstance(paths, list | tuple) else [paths]:
        text = fspath(path) if isinstance(path, str | PathLike) else str(path)
        if url_scheme(text) is not None:
            found.append(decoded_path(text).strip("/"))
        else:
            base = text if Path(text).exists() else split_glob(text)[0]
            found += [str(each).strip("/") for each in (Path(base).absolute(), Path(base).resolve())]
    return found


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def describe_drift(files: Sequence[str], read: Callable[[str], pa.Schema]) -> str | None:
    """Two of the files that have a column with types that cannot be combined, in words; None if there are none."""
    seen: dict[str, tuple[pa.DataType, str]] = {}
    for file in files:
        for field in read(file):
            known = seen.setdefault(field.name, (field.type, file))
            if known[0] != field.type and pa.null() not in (known[0], field.type):
                return f"column {field.name!r} is {field.type} in {file!r} and {known[0]} in {known[1]!r}"
    return None


def find_unreadable(files: Sequence[str], read: Callable[[str], pa.Schema]) -> str | None:
    """The first of some files whose schema cannot be read, in words; None if there is none."""
    for file in files:
        try:
            with panics_as_errors():
                read(file)
        except Exception as error:
            return f"the file {file!r} cannot be read: {clean_message(error)}"
    return None
