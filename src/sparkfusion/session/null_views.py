"""NULL partitions that did not exist when a table was made.

A table with such a directory is a view (`external_tables`, `file_tables`). Other tables stay DataFusion's own, which
support INSERT. If a directory for NULL comes later, by an INSERT or from another program, queries read the table
through a view from then on.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress

from datafusion import SessionContext
from datafusion.catalog import Table

from sparkfusion.feed.ready.hive import NULL_VALUE
from sparkfusion.session.directory_tables import INSERT, DirectoryTables
from sparkfusion.session.external_tables import is_text
from sparkfusion.session.file_tables import show_partitions
from sparkfusion.session.layout import PartitionColumn
from sparkfusion.session.sql_text import mask
from sparkfusion.urls import is_url, plain_path

_VIEW = "view"
_MAKES = re.compile(r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?(?:TABLE|VIEW)\b", re.IGNORECASE)


def makes_of_rows(text: str) -> bool:
    """Whether a statement makes a table or a view from the rows of a query."""
    return _MAKES.match(mask(text)) is not None


def null_views(tables: DirectoryTables, text: str) -> dict[str, Table]:
    """What names in a query mean: a view, for tables on this machine that have got NULL partitions.

    The table that a statement inserts into is not replaced.
    """
    written = INSERT.match(mask(text))
    target = tables.own_name(text[written.start(1) : written.end(1)]) if written is not None else None
    found: dict[str, Table] = {}
    for name, table, made in tables.tables_named_in(text):
        if name == target or table.kind == _VIEW or is_url(made.target.path):
            continue
        nullable = set(_null_columns(plain_path(made.target.path)))
        columns = [each for each in table.schema if each.name in nullable and is_text(each.type)]
        if columns:
            shown = tuple(PartitionColumn(column.name, column.name, column.type) for column in columns)
            context = SessionContext()
            context.register_table(f'"{name}"', table)
            found[name] = Table(show_partitions(context.table(f'"{name}"'), shown))
    return found


def _null_columns(directory: str) -> Iterator[str]:
    """The columns that have a directory for NULL, as directories spell them."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            name, equals, value = entry.name.partition("=")
            if equals and entry.is_dir():
                if value == NULL_VALUE:
                    yield name
                yield from _null_columns(entry.path)
