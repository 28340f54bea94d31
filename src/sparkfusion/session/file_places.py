"""Where the files of tables are, on this machine. DataFusion takes a directory that has vanished for an empty one."""

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

TABLE_SCAN = re.compile(r"TableScan: (.+?)(?= projection=|, (?:full_|partial_)?filters=|, fetch=|$)", re.MULTILINE)
"""The table of a scan, in the words of a logical plan."""


class FilePlaces:
    """The paths of tables that were there when the tables were made, for as long as the names mean these tables."""

    def __init__(self, tables: DirectoryTables) -> None:
        self._tables = tables
        self._places: dict[str, tuple[Table, tuple[Path, ...]]] = {}

    def add(self, reference: str, source: Any) -> None:
        """Remember a new table.

        Args:
            source: a path or several, as `register_parquet` takes them, or a LOCATION.
        """
        table = self._tables.meant_by(reference)
        name = self._tables.own_name(reference)
        if table is None or name is None:
            return
        found = (_place(each) for each in (source if isinstance(source, list | tuple) else [source]))
        self._places[name] = table, tuple(place for place in found if place is not None and place.exists())

    def check(self, frame: datafusion.DataFrame) -> None:
        """Refuse a query over a table whose file or directory is gone."""
        if not self._places:
            return
        for scanned in dict.fromkeys(TABLE_SCAN.findall(frame.logical_plan().display_indent())):
            reference = ".".join(f'"{part}"' for part in scanned.replace('"', "").split("."))
            table, places = self._places.get(self._tables.own_name(reference) or "", (None, ()))
            if table is None or self._tables.meant_by(reference) is not table:
                continue
            for place in places:
                if not place.exists():
                    raise UserError(
                        f"the files of table {scanned!r} are gone: {str(place)!r} does not exist any more",
                        hint="put them back, or deregister the table and register it where its files are now",
                    )


def _place(source: Any) -> Path | None:
    """A path of this machine; of a pattern, the directory below which files match."""
    if not isinstance(source, str | PathLike):
        return None
    text = str(source).removeprefix("file://")
    if "://" in text:
        return None
    return Path(text if Path(text).exists() else split_glob(text)[0]).absolute()
