"""Tables of files: their names, paths and formats."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkfusion.config import suggest
from sparkfusion.errors import SparkfusionError, UserError
from sparkfusion.formats import FORMATS, Format, ending_of, format_of
from sparkfusion.urls import url_scheme

if TYPE_CHECKING:
    from sparkfusion import Session

_ALIASES = {"ndjson": "json", "jsonl": "json"}
_NO_OPTIONS = ("name", "path", "schema", "options", "object_store", "table_partition_cols", "file_sort_order")
_GLOB = re.compile(r"[*?\[]")
_PREFIX = re.compile(r"(\w{2,}):(?!//)")  # a single letter is a drive of Windows
_MISSING = re.compile(r"\btable 'datafusion\.public\.([^']+)' not found")


class UnknownFormatError(ValueError):
    """The name of a file implies no format."""

    def __init__(self, file: str, remedy: str) -> None:
        super().__init__(f"cannot infer the format of {file!r} from its name; {remedy}")


@dataclass(frozen=True)
class Table:
    """A table to register in the session. `extension` is the ending of its files' names, `compression` that of the
    files. `options` are arguments of the method that registers it."""

    name: str
    path: str
    format: Format
    extension: str
    compression: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def parse_table(text: str) -> Table:
    """Parse the option's value. A prefix sets the format; otherwise the file names imply it.

    >>> parse_table("t=csv:s3://bucket/data.txt")
    Table(name='t', path='s3://bucket/data.txt', format='csv', extension='.txt', compression=None, options={})
    """
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise ValueError(f"{text!r} is not NAME=PATH")
    forced, colon, rest = path.partition(":")
    forced = _ALIASES.get(forced, forced)
    if colon and forced in FORMATS and not rest.startswith("//"):
        extension, compression = _ending(_sample(rest) or rest)
        return Table(name, rest, forced, extension, compression)
    prefix = _PREFIX.match(path)
    if prefix is not None and not any(Path().glob(path)):
        raise ValueError(f"there is no format {prefix[1]!r}, only {', '.join(FORMATS)}; nor does a file {path!r} exist")
    sample = _sample(path)
    if sample is None:
        raise ValueError(f"{path!r} does not exist, or holds no files")
    extension, compression = _ending(sample)
    readable = compression is not None or extension.count(".") < 2
    found = format_of(extension) if readable else None
    if found is None:
        raise UnknownFormatError(sample, f"write {name}=FORMAT:{path}, FORMAT being one of {', '.join(FORMATS)}")
    return Table(name, path, found, extension, compression)


def register(session: Session, table: Table) -> None:
    """Register the table. The session finds usual file extensions, and the compression they imply, by itself."""
    usual = format_of(table.extension) == table.format
    said: dict[str, Any] = {} if usual else {"file_extension": table.extension}
    if not usual and table.format in ("csv", "json"):
        said["file_compression_type"] = table.compression
    method = getattr(session, f"register_{table.format}")
    known = [name for name in inspect.signature(method).parameters if name not in _NO_OPTIONS]
    for option in table.options:
        if option not in known:
            raise UserError(
                f"table {table.name!r}: files of the format {table.format} have no option {option!r}",
                hint=suggest(option, known) or f"there are {', '.join(known)}",
            )
    method(table.name, table.path, **said | dict(table.options))


def _sample(path: str) -> str | None:
    """The path of one file of the table: the path itself, or the first file in that directory."""
    if url_scheme(path) is not None or _GLOB.search(path):
        return path
    if Path(path).is_dir():
        return min(_files_below(path), default=None)
    return path if Path(path).exists() else None


def _files_below(directory: str) -> Iterator[str]:
    for parent, directories, names in os.walk(directory):
        directories[:] = [name for name in directories if not name.startswith((".", "_"))]
        yield from (os.path.join(parent, name) for name in names if not name.startswith((".", "_")))  # noqa: PTH118


def _ending(path: str) -> tuple[str, str | None]:
    """The ending of the file's name, and the compression that it implies."""
    return ending_of(path.rstrip("/"))


def check_unique(tables: tuple[Table, ...]) -> None:
    """Raise if two tables have the same name: that is a mistake, not a replacement."""
    names = [table.name for table in tables]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"table {twice[0]!r} is given twice", hint="give every table a name of its own")


def hint_of(error: SparkfusionError) -> str | None:
    """The error's own hint. If a table is not found, the hint also shows the option that adds it. As in SQL, a name
    without quotes is read in lower case, and a path in double quotes is a name.

    >>> hint_of(UserError("table 'datafusion.public.t' not found", hint="known tables: u"))
    'known tables: u; --table t=PATH adds it'
    """
    found = _MISSING.search(error.message)
    if found is None:
        return error.hint
    if "/" in found[1] or Path(found[1]).exists():
        return f"write a path in single quotes: '{found[1]}'"
    option = f"{found[1]}=PATH" if found[1] == found[1].lower() else f"'\"{found[1]}\"=PATH'"
    return "; ".join(filter(None, (error.hint, f"--table {option} adds it")))
