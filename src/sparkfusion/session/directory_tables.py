"""Tables of files in a directory, and how they were made: so new files are written in a way that the table can read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from datafusion.catalog import Table

from sparkfusion.formats import written_ending
from sparkfusion.session.external_statement import REFERENCE, ExternalStatement, unquote
from sparkfusion.session.file_arguments import FileArguments
from sparkfusion.session.session_schema import SessionSchema
from sparkfusion.session.session_settings import DEFAULT_CATALOG, DEFAULT_SCHEMA, SessionSettings, show_value
from sparkfusion.session.sql_names import is_plain_name, split_name
from sparkfusion.session.write import CopyTarget, WriteTarget, copy_tail

INSERT = re.compile(rf"\s*INSERT\s+(?:INTO|OVERWRITE)\s+(?:TABLE\s+)?({REFERENCE.pattern})", re.IGNORECASE)
"""The beginning of a statement that writes to a table."""

_IN_PARENTHESES = re.compile(r"\([^()]*\)")

_NOWHERE = CopyTarget("", "")
_OWN = ("datafusion", "public")
_ORDERED = "it was created WITH ORDER, and new files might have another order"
_WRITTEN_CSV = ("has_header", "delimiter", "quote", "escape", "terminator")
_READ_ONLY_CSV = {"newlines_in_values", "schema", "schema_infer_max_records", "file_extension", "truncated_rows"}
_VISIBLE = "/[!_.]*"


@dataclass(frozen=True)
class DirectoryTable:
    """How to write files of a table.

    Attributes:
        refusal: why files cannot be written.
        target: what follows the source in a COPY.
        partitions: the columns that are in names of directories.
        reads_inserts: whether the table reads the files that DataFusion's own INSERT writes. Their names always end in
            the format's own extension, such as `.csv`, also if they are compressed.
    """

    refusal: str | None = None
    target: CopyTarget = _NOWHERE
    partitions: tuple[str, ...] = ()
    reads_inserts: bool = True

    def foreign_directory(self) -> str | None:
        """A directory inside the table's directory that is not one of its partitions, and would be lost with it."""
        home = Path(self.target.path)
        directories = [path for path in home.iterdir() if path.is_dir()] if home.is_dir() else []
        found = (path for path in directories if path.name.partition("=")[0] not in self.partitions)
        return next((str(path) for path in found if path.name != "_temporary"), None)


class DirectoryTables:
    """The tables of a session's own schema that are directories, while the names mean the tables that it made."""

    def __init__(self, schema: SessionSchema, settings: SessionSettings) -> None:
        self._schema = schema
        self._settings = settings
        self._made: dict[str, tuple[Table, DirectoryTable]] = {}
        schema.forget_in(self._made)

    def add(self, reference: str, made: DirectoryTable, before: Table | None = None) -> None:
        """Remember how a table was made, unless the name still means what it meant before."""
        name = self.own_name(reference)
        table = self.find_table(reference)
        if name is not None and table is not None and table is not before:
            self._made[name] = table, made

    def find(self, reference: str) -> DirectoryTable | None:
        table, made = self._made.get(self.own_name(reference) or "", (None, None))
        return made if table is not None and self.find_table(reference) is table else None

    def tables_named_in(self, text: str) -> Iterator[tuple[str, Table, DirectoryTable]]:
        """The tables whose names are in the text of a query."""
        for name, (table, made) in list(self._made.items()):
            if name.lower() in text.lower() and self._schema.own(name) is table:
                yield name, table, made

    def find_table(self, reference: str) -> Table | None:
        name = self.own_name(reference)
        return self._schema.own(name) if name is not None else None

    def own_name(self, reference: str) -> str | None:
        """The table's name in the session's own schema; None if the reference means another schema."""
        return own_name(reference, (self._settings[DEFAULT_CATALOG], self._settings[DEFAULT_SCHEMA]))


def own_name(reference: str, default: tuple[str, str] = _OWN) -> str | None:
    """The table's name in the session's own schema; None if the reference means another schema.

    Args:
        default: catalog and schema of names that come without.

    >>> own_name('Sales'), own_name('datafusion.public."Sales"'), own_name("other.sales")
    ('sales', 'Sales', None)
    """
    *home, name = split_name(reference) or ("",)
    return name if (*default[: 2 - len(home)], *home) == _OWN else None


def table_of(statement: ExternalStatement) -> DirectoryTable:
    """How to write files of the table that a statement makes.

    >>> from sparkfusion.session.external_statement import parse_external
    >>> made = parse_external("create external table t stored as csv location 'x' options (has_header false)")
    >>> table_of(made).target.tail
    "TO 'x/' STORED AS csv OPTIONS (has_header false)"
    """
    rest = f"STORED AS {statement.stored_as}"
    columns = _IN_PARENTHESES.sub("", statement.partitions).split(",")
    names = [column.split()[0] for column in columns if column.strip()]
    if names:
        rest += f" PARTITIONED BY ({', '.join(names)})"
    if statement.options:
        rest += f" OPTIONS ({statement.options})"
    odd = [name for name in names if not is_plain_name(name)]
    refusal = f"COPY takes plain lower-case names of partition columns only, not {odd[0]}" if odd else None
    refusal = _ORDERED if statement.has_order else refusal
    path = f"{statement.location.rstrip('/')}/"
    return DirectoryTable(refusal, CopyTarget(path, rest, path), tuple(names), not _is_packed(statement))


def directory_table_of(method: str, format: str, arguments: Mapping[str, Any]) -> DirectoryTable | None:
    """How to write files of a table that `register_csv` or the like made of these arguments; None if not known."""
    path = arguments.get("path")
    if not isinstance(path, str | PathLike):
        return None
    settings = FileArguments(method, dict(arguments))
    columns = tuple(name for name, _ in settings.partitions or ())
    compression = settings.get("file_compression_type") or ""
    ending = f".{format}{written_ending(str(compression))}"
    if (settings.get("file_extension") or ending) != ending and settings.extension is not None:
        said = f"its files end in {settings.extension!r}, and new ones would in {ending!r}"
        return DirectoryTable(said, reads_inserts=False)
    reads_inserts = ending == f".{format}"
    if arguments.get("file_sort_order"):
        return DirectoryTable(_ORDERED, reads_inserts=reads_inserts)
    if odd := [name for name in columns if not is_plain_name(name)]:
        said = f"COPY takes plain lower-case names of partition columns only, not {odd[0]!r}"
        return DirectoryTable(said, reads_inserts=reads_inserts)
    options = {"format.compression": str(compression)} if compression else {}
    if format == "csv":
        if (refusal := _unwritable(arguments["options"])) is not None:
            return DirectoryTable(refusal, reads_inserts=reads_inserts)
        given = {name: settings.get(name) for name in _WRITTEN_CSV}
        options |= {f"format.{name}": show_value(value) for name, value in given.items() if value is not None}
    directory = f"{str(path).removesuffix(_VISIBLE).rstrip('/')}/"
    tail = copy_tail(WriteTarget(format.upper(), directory, options, columns))
    return DirectoryTable(None, CopyTarget.parse(tail), columns, reads_inserts)


def _is_packed(statement: ExternalStatement) -> bool:
    options = {name.lower().removeprefix("format."): unquote(value) for name, value in statement.pairs()}
    return statement.format in ("csv", "json") and written_ending(options.get("compression", "")) != ""


def _unwritable(options: Any) -> str | None:
    """An option for reading CSV files that does not exist for writing them, but changes what the table is."""
    known = {*_WRITTEN_CSV, *_READ_ONLY_CSV, "file_compression_type", "table_partition_cols"}
    default = vars(type(options)())
    lost = [name for name, value in vars(options).items() if name not in known and value != default.get(name)]
    return f"it is read with {lost[0]}, which writing does not have" if lost else None
