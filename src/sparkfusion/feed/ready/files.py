"""Files: a table of the files in directories, found while queries run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from sparkfusion.errors import UserError
from sparkfusion.feed.provider import FeedContext, Reader, WorkUnitFeedProvider
from sparkfusion.feed.ready.file_access import FileAccess, LocalFileAccess, locate, refuse_compressed
from sparkfusion.feed.ready.hive import HiveColumn, Values, check_type, check_values, infer_type, known_values
from sparkfusion.feed.ready.patterns import Pattern, split_glob
from sparkfusion.feed.ready.peek import file_schema
from sparkfusion.feed.ready.walk import DirectorySortOrder, FileSortOrder, ListedFile, Walk, sort_key
from sparkfusion.feed.units import FileUnit
from sparkfusion.formats import format_of

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Survey = tuple[FileAccess, ListedFile, dict[str, list[str | None]]]


class Files(WorkUnitFeedProvider):
    """The files at some paths. Queries read the first files while other directories are still being listed.

    Empty files and names that begin with `_` or `.` are skipped. In a directory, only files of the table's format are
    read; a glob reads every file that matches. If a list names a file twice, it is read twice.

    Args:
        paths: a directory, a file, a glob (`*`, `?`, `[…]`, `**`), or several of them; local, or URLs of object stores
            (`s3://…`; there `?` begins Arrow's parameters). DataFusion needs the object store registered as well.
        format: the format of the files. By default it is inferred from their extensions.
        schema: the schema of the files. By default that of the first file.
        recursive: whether directories in directories are listed too.
        order: "name", "newest", "oldest", "largest", or a key function of `ListedFile`s. It sorts all
            files, so the query waits until everything is listed.
        directory_order: "ascending" or "descending": sorts each directory as it is listed, so the query need not wait.
            With Hive directories, such as `day=2024-05-01`, "descending" takes the newest first.
        hive: whether directories `name=value` below the fixed part of a path become columns; or these columns with
            their types. Without types, a column is int64 if all its values on the way to the first file are integers,
            else string. Directories that the query's conditions exclude are not listed.
        filesystem: Arrow's file system for the listing, for stores that need more than a URL.
    """

    reader: Reader | None = None

    def __init__(
        self,
        paths: Paths,
        *,
        format: str | None = None,
        schema: pa.Schema | None = None,
        recursive: bool = True,
        order: FileSortOrder | None = None,
        directory_order: DirectorySortOrder | None = None,
        hive: bool | Sequence[HiveColumn] = True,
        filesystem: fs.FileSystem | None = None,
    ) -> None:
        if directory_order not in (None, "ascending", "descending"):
            raise UserError(f"unknown directory order {directory_order!r}", hint="ascending or descending")
        several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        self._bases = [_base_of(path, filesystem) for path in several]
        if not self._bases:
            raise UserError("no paths are given")
        self._recursive = recursive
        self._key = sort_key(order)
        self._directory_order = directory_order
        self._hive = hive if isinstance(hive, bool) else tuple(hive)
        self._given_format, self._given_schema = format, schema
        self._surveyed: Survey | None = None

    @cached_property
    def format(self) -> str:
        """The format that was given, else that of the first file."""
        if self._given_format is not None:
            return self._given_format
        for _, _, parts in self._bases:
            if parts and (found := format_of(parts[-1])) is not None:
                return found
        found = format_of(self._first[1].path)
        if found is None:
            raise UserError(
                f"cannot infer the format of {self._first[1].path!r}", hint="pass format='parquet', for example"
            )
        return found

    @cached_property
    def partition_columns(self) -> list[HiveColumn]:
        """The Hive columns that were given, else those of the first file. Empty if there is no file yet."""
        if isinstance(self._hive, tuple):
            return list(self._hive)
        if not self._hive or (self._given_schema is not None and self._survey is None):
            return []
        known = {} if self._given_schema is None else {field.name: field.type for field in self._given_schema}
        _, file, seen = self._first
        return [(name, known.get(name, infer_type(seen[name]))) for name in file.partition_values]

    def schema(self) -> pa.Schema:
        """The schema that was given, else that of the first file, without partition columns."""
        if self._given_schema is not None:
            return self._given_schema
        access, file, _ = self._first
        return file_schema(access, file.path, self.format)

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[FileUnit]:
        checked: set[tuple[str, str | None]] = set()
        columns = dict(self.partition_columns)

        def keeps(siblings: Sequence[Values]) -> list[bool]:
            kept = context.keeps_each([known_values(values, self.partition_columns) for values in siblings])
            context.count("pruned", kept.count(False))
            return kept

        files = self._files(keeps, context)
        for file in files if self._key is None else sorted(files, key=self._key):
            values = check_values(file.path, file.partition_values, self.partition_columns, inferred=self._hive is True)
            for name, value in values.items():
                if (name, value) not in checked:
                    check_type(file.path, name, value, columns[name])
                    checked.add((name, value))
            yield FileUnit(file.path, file.size, partition_values=values)

    def first_path(self) -> str:
        """The path of a file of the table, for finding out the schema."""
        return self._first[1].path

    def open(self, path: str) -> Any:
        """Open the file of a unit, for `RowGroups`."""
        return self._access_to(path).open(path)

    def _access_to(self, path: str) -> FileAccess:
        return next(access for access, base, _ in self._bases if f"{path}/".startswith(f"{base.rstrip('/')}/"))

    def _files(
        self, keeps: Callable[[Sequence[Values]], list[bool]], context: FeedContext | None = None
    ) -> Iterator[ListedFile]:
        for access, base, parts in self._bases:
            walk = Walk(
                access,
                Pattern(parts, self._recursive),
                keeps if self._hive else _all,
                stopped=lambda: context is not None and context.stopped,
                on_directory=lambda path: context.count("directories") if context is not None else None,
                order=self._directory_order,
            )
            for file in walk.files(base):
                if file.size and self._is_of_table(file, surveying=context is None):
                    yield file if self._hive else ListedFile(file.path, file.size, file.modified)

    def _is_of_table(self, file: ListedFile, *, surveying: bool) -> bool:
        """Whether a file belongs to the table. A file that a path names always does; in a directory the extension
        decides."""
        own, wanted = format_of(file.path), self._given_format if surveying else self.format
        if own is not None and wanted is not None and own != wanted and self._given_format is None:
            raise UserError(f"{file.path!r} is {own}, other files are {wanted}", hint=f"format={wanted!r}")
        if not file.asked and (own is None or (wanted is not None and own != wanted)):
            return False
        refuse_compressed(file.path)
        return True

    @property
    def _survey(self) -> Survey | None:
        """The first file, and the values of Hive columns that were listed on the way to it. None, which is not cached,
        if there is no file."""
        self._surveyed = self._surveyed or self._look()
        return self._surveyed

    def _look(self) -> Survey | None:
        seen: dict[str, list[str | None]] = {}

        def note(siblings: Sequence[Values]) -> list[bool]:
            for values in siblings:
                for name, value in values.items():
                    seen.setdefault(name, []).append(value)
            return _all(siblings)

        for file in self._files(note):
            return self._access_to(file.path), file, seen
        return None

    @property
    def _first(self) -> Survey:
        found = self._survey
        if found is None:
            shown = ", ".join("/".join((base, *parts)) for _, base, parts in self._bases)
            raise UserError(f"there are no files in {shown}", hint="pass schema=… and format=…")
        return found


def _base_of(path: str | os.PathLike[str], filesystem: fs.FileSystem | None) -> tuple[FileAccess, str, tuple[str, ...]]:
    access, found = locate(path, filesystem)
    if isinstance(access, LocalFileAccess) and Path(found).exists():  # a name may contain a bracket
        return access, found, ()
    return access, *split_glob(found)


def _all(siblings: Sequence[Values]) -> list[bool]:
    return [True] * len(siblings)
