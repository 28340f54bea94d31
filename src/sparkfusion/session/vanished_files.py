"""Refuse queries over files that have vanished: DataFusion takes a directory that does not exist for an empty one."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import Any

import datafusion
from datafusion.catalog import Table

from sparkfusion.errors import UserError
from sparkfusion.feed.ready.patterns import split_glob
from sparkfusion.session.directory_tables import DirectoryTables
from sparkfusion.session.linked_files import LinkedFiles
from sparkfusion.urls import is_url, plain_path

TABLE_SCAN = re.compile(r"TableScan: (.+?)(?= projection=|, (?:full_|partial_)?filters=|, fetch=|$)", re.MULTILINE)
"""The table of a scan, in the words of a logical plan."""


class VanishedFiles:
    """The local paths of tables that existed when the tables were made, for as long as the names mean these tables."""

    def __init__(self, tables: DirectoryTables, links: LinkedFiles) -> None:
        self._tables = tables
        self._links = links
        self._paths: dict[str, tuple[Table, tuple[Path, ...]]] = {}

    def add(self, reference: str, source: Any) -> None:
        """Remember a new table. `source`: a path or several, as `register_parquet` takes them, or a LOCATION."""
        table = self._tables.find_table(reference)
        name = self._tables.own_name(reference)
        if table is None or name is None:
            return
        found = (_local_path(each) for each in (source if isinstance(source, list | tuple) else [source]))
        self._paths[name] = table, tuple(path for path in found if path is not None and path.exists())

    def check(self, dataframe: datafusion.DataFrame) -> None:
        """Refuse a query over a table whose file or directory is gone."""
        self._links.check(dataframe)
        if not self._paths:
            return
        for scanned in dict.fromkeys(TABLE_SCAN.findall(dataframe.logical_plan().display_indent())):
            reference = ".".join(f'"{part}"' for part in scanned.replace('"', "").split("."))
            table, paths = self._paths.get(self._tables.own_name(reference) or "", (None, ()))
            if table is None or self._tables.find_table(reference) is not table:
                continue
            for path in paths:
                if not path.exists():
                    raise UserError(
                        f"the files of table {scanned!r} are gone: {str(path)!r} does not exist any more",
                        hint="put them back, or deregister the table and register it where its files are now",
                    )


def _local_path(source: Any) -> Path | None:
    """A path of this machine; for a pattern, the directory below which files match."""
    if not isinstance(source, str | PathLike):
        return None
    if is_url(str(source)):
        return None
    text = plain_path(str(source))
    return Path(text if Path(text).exists() else split_glob(text)[0]).absolute()
