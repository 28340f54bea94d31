"""Tables of exactly the given files, wherever they are: a directory of links, which DataFusion scans like any other.

DataFusion's tables are directories, and a directory may hold other files than a catalog says, or get them later. The
links of a table never change, and its partition values are the names that we give to directories of links. Plans for
tasks name the files themselves.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import datafusion
import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from sparkfusion.errors import UserError
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.feed.ready.hive import NULL_VALUE
from sparkfusion.plan.sources import object_path
from sparkfusion.plan.wire import PlanNode, file_scan_conf, walk
from sparkfusion.runner.base import CatalogFile
from sparkfusion.session.file_tables import show_partitions
from sparkfusion.session.layout import PartitionColumn
from sparkfusion.session.parquet_footers import READ_INT96
from sparkfusion.session.placeholders import condition_while_read, numbers_in
from sparkfusion.session.sql_names import quote_name

_CONDITION = "is_linked"


@dataclass(frozen=True)
class _Linked:
    """A table of links. `targets`: for each link, as plans name it, the file that it means."""

    name: str
    targets: Mapping[str, str]
    origin: str


_NONE = _Linked("", {}, "")


class LinkedFiles:
    """The links of one session. They are removed with the last query that reads their table."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._home: OwnedDirectory | None = None
        self._numbers = itertools.count(1)
        self._tables: dict[int, _Linked] = {}

    def read(
        self,
        name: str,
        files: Sequence[CatalogFile],
        schema: pa.Schema,
        partitions: Sequence[str],
        origin: str = "",
    ) -> datafusion.DataFrame:
        """All rows of these Parquet files, with exactly this schema.

        Args:
            name: the table's, for plans and errors. `origin`: which version of it these files are, for `explain`.
            partitions: the columns whose values are in `CatalogFile.values`.
        """
        with self._lock:
            if self._home is None:
                self._home = OwnedDirectory("linked-files", Path(tempfile.gettempdir()))
            number = next(self._numbers)
            home = self._home.path.resolve() / str(number)
        condition = condition_while_read(_CONDITION, number, home, self._forget)
        home.mkdir()
        targets = {}
        for place, file in enumerate(files):
            directory = home.joinpath(*map(_directory, partitions, file.values))
            directory.mkdir(parents=True, exist_ok=True)
            link = directory / f"{place:06d}.parquet"
            link.symlink_to(file.path)
            targets[object_path(str(link))] = file.path
        self._tables[number] = _Linked(name, targets, origin)
        stored = pa.schema([field for field in schema if field.name not in partitions])
        context = SessionContext(SessionConfig(READ_INT96))  # of this table alone, and its scans carry the options
        shown = quote_name(name)
        texts = [(column, pa.string()) for column in partitions]
        context.register_parquet(shown, str(home), table_partition_cols=texts, schema=stored)
        columns = tuple(PartitionColumn(column, column, schema.field(column).type) for column in partitions)
        read = show_partitions(context.table(shown), columns)  # whose partition columns are the last ones
        names = list(map(quote_name, schema.names))
        return (read if read.schema().names == schema.names else read.select(*names)).filter(condition)

    def _forget(self, number: int) -> None:
        self._tables.pop(number, None)

    def point_to_files(self, root: PlanNode) -> None:
        """Let scans name the files instead of the links, in place."""
        if self._home is None:
            return
        prefix = f"{object_path(str(self._home.path.resolve()))}/"
        for node in walk(root):
            conf = file_scan_conf(node)
            for group in conf.file_groups if conf is not None else ():
                for file in group.files:
                    if file.path.startswith(prefix):
                        number = int(file.path.removeprefix(prefix).split("/", 1)[0])
                        file.path = object_path(self._tables[number].targets[file.path])

    def check(self, dataframe: datafusion.DataFrame) -> None:
        """Refuse a query over files that were deleted: DataFusion would leave out their links without an error."""
        if not self._tables:
            return
        for number in numbers_in(dataframe, _CONDITION):
            table = self._tables.get(number, _NONE)
            for path in table.targets.values():
                if not Path(path).exists():
                    raise UserError(
                        f"files of table {table.name!r} were deleted after the query was created: {path!r} does not "
                        "exist any more",
                        hint="create the query again: session.sql(…) finds the files that the table has now",
                    )

    def describe(self, dataframe: datafusion.DataFrame) -> list[str]:
        """A line for each such table that a query reads."""
        found = [self._tables[number] for number in numbers_in(dataframe, _CONDITION) if number in self._tables]
        return [f"table {table.name}: {_count(table)}, read by DataFusion" for table in found]

    def close(self) -> None:
        if self._home is not None:
            self._home.close()


def _directory(column: str, value: str | None) -> str:
    return f"{column}={NULL_VALUE if value is None else value}"


def _count(table: _Linked) -> str:
    files = len(table.targets)
    counted = "1 Parquet file" if files == 1 else f"{files:,} Parquet files"
    return f"{counted} of {table.origin}" if table.origin else counted
