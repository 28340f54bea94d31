"""Find tables that `--table` does not name one by one: those of a directory, of `sparkfusion.toml`, and of paths in the
SQL itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sparkfusion.cli.tables import Table, UnknownFormatError, parse_table, register
from sparkfusion.config.config_file import ConfigFile
from sparkfusion.errors import UserError
from sparkfusion.session.sql_names import name_in_sql
from sparkfusion.session.sql_text import mask

if TYPE_CHECKING:
    from sparkfusion import Session

_ALIAS = r"(?!(?:inner|left|right|full|cross|natural|join)\b)\w+"
_ITEM = rf"(?:'x*'|[\w.]+)(?:\s+(?:as\s+)?{_ALIAS})?"
_FROM = re.compile(rf"(?P<word>\b(?:from|join))\s+(?P<items>{_ITEM}(?:\s*,\s*{_ITEM})*)", re.IGNORECASE)
_QUOTED = re.compile(r"'x*'")
_SELECT = re.compile(r"\s*$|.*\b(?:select|delete)\b", re.IGNORECASE | re.DOTALL)
_NO_CLAUSE = re.compile(r"\bdistinct\s+$", re.IGNORECASE)


def tables_at(text: str) -> tuple[list[Table], list[str]]:
    """The tables of `NAME=PATH`, of a file, or of a directory; and the names of other entries of the directory."""
    name, equals, _ = text.partition("=")
    if equals and (name.startswith('"') or "/" not in name):
        return [parse_table(text)], []
    if Path(text).is_dir():
        return _tables_in(text)
    return [parse_table(f"{name_in_sql(_name_of(Path(text)))}={text}")], []


def _name_of(path: Path) -> str:
    """The table's name: that of the file without its extensions, in lower case, so that it needs no quotes."""
    return (path.name if path.is_dir() else path.name.partition(".")[0]).lower()


def _tables_in(directory: str) -> tuple[list[Table], list[str]]:
    """Each entry of the directory as a table."""
    tables: dict[str, Table] = {}
    others, clashes = [], []
    for entry in sorted(Path(directory).iterdir()):
        if entry.name.startswith((".", "_")):
            continue
        name = _name_of(entry)
        if entry.is_dir() and not _may_be_table(entry):
            others.append(entry.name)
            continue
        try:
            found = parse_table(f"{name_in_sql(name)}={entry}{os.sep if entry.is_dir() else ''}")
        except ValueError:
            others.append(entry.name)
            continue
        other = tables.setdefault(name, found)
        if other is not found:
            clashes.append(f"{other.path} and {found.path} would both be table {name!r}")
    if clashes:
        raise UserError("; ".join(clashes), hint="name them yourself: --table NAME=PATH")
    return list(tables.values()), others


def _may_be_table(directory: Path) -> bool:
    """Whether it contains files, or partition directories such as `year=2026`. Other directories are not read."""
    visible = (entry for entry in directory.iterdir() if not entry.name.startswith((".", "_")))
    return any("=" in entry.name or not entry.is_dir() for entry in visible)


def tables_of_file(file: ConfigFile) -> tuple[Table, ...]:
    """The tables of `sparkfusion.toml`."""
    found = []
    for entry in file.tables:
        form = "" if entry.format is None else f"{entry.format}:"
        try:
            table = parse_table(f"{name_in_sql(entry.name)}={form}{entry.path}")
        except ValueError as error:
            raise UserError(f"{file.path}: table {entry.name!r}: {error}") from error
        found.append(replace(table, options=entry.options))
    return tuple(found)


def add_tables(first: Iterable[Table], more: Iterable[Table]) -> tuple[Table, ...]:
    """The tables of `first`, and those of `more` whose names are not taken."""
    given = tuple(first)
    taken = {_plain_name(table.name) for table in given}
    return (*given, *(table for table in more if _plain_name(table.name) not in taken))


def _plain_name(name: str) -> str:
    """A name as SQL reads it.

    >>> _plain_name("Orders"), _plain_name('"Orders"')
    ('orders', 'Orders')
    """
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def register_paths(session: Session, sql: str) -> None:
    """Register the files that a statement names in quotes where a table would be, each under its path.

    In that place, quoted text can only be a path. So a path that cannot be read raises an error that says why.
    """
    paths = paths_in(sql)
    if not paths or session.config["sparkfusion.dialect"] != "datafusion":
        return
    known = session.catalog().schema().names()
    for path in paths:
        if path not in known:
            try:
                register(session, parse_table(f"{name_in_sql(path)}={path}"))
            except UnknownFormatError as error:
                name = name_in_sql(_name_of(Path(path)))
                words = f"cannot read {path!r} as a table: its name implies no format"
                hint = f"name it: create external table {name} stored as csv location '{path}', if it is CSV"
                raise UserError(words, hint=f"{hint}; or on the command line --table {name}=csv:{path}") from error
            except ValueError as error:
                raise UserError(f"cannot read {path!r} as a table: {error}") from error


def paths_in(sql: str) -> list[str]:
    """The paths in the FROM clauses of a statement.

    >>> paths_in("select 'a' from 'data/*.parquet' p join 'b.csv' on p.x = 'c' where 'd' in ('e', 'f')")
    ['data/*.parquet', 'b.csv']
    """
    masked = mask(sql)
    found: list[str] = []
    for clause in _FROM.finditer(masked):
        if clause["word"].lower() == "join" or _begins_clause(masked[: clause.start()]):
            for each in _QUOTED.finditer(masked, clause.start("items"), clause.end("items")):
                found.append(sql[each.start() + 1 : each.end() - 1].replace("''", "'"))
    return [path for path in dict.fromkeys(found) if path]


def _begins_clause(before: str) -> bool:
    """Whether a FROM after this text begins a clause. It does not in `trim(both 'x' from 'y')`.

    >>> _begins_clause("select a, (select b "), _begins_clause("select trim(both 'x' ")
    (True, False)
    """
    depth, opened = 0, 0
    for at in range(len(before) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(before[at], 0)
        if depth < 0:
            opened = at + 1
            break
    return _SELECT.match(before, opened) is not None and _NO_CLAUSE.search(before) is None
