"""Tables of exactly the given files in an object store: a feed that knows all its units.

DataFusion's tables are directories, and there are no links in an object store (`linked_files.py` makes them for files
of this machine). So tasks get the files one by one, as they do for any feed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import datafusion
import pyarrow as pa

from sparkfusion.feed.feed import WorkUnitFeed
from sparkfusion.feed.provider import FeedContext, WorkUnitFeedProvider
from sparkfusion.feed.units import FileUnit
from sparkfusion.runner.base import CatalogFile, CatalogTable
from sparkfusion.session.feed_options import FeedOptions
from sparkfusion.session.feed_tables import FeedTables
from sparkfusion.session.parquet_footers import READ_INT96
from sparkfusion.session.sql_names import quote_name
from sparkfusion.urls import is_url, split_object


def place_of(files: Sequence[CatalogFile]) -> str | None:
    """The scheme and the bucket of files that are not on this machine, as in `s3a://bucket`; None if they are."""
    if not files or not is_url(files[0].path):
        return None
    return split_object(files[0].path)[0].rstrip("/")


def read_remote_files(feeds: FeedTables, table: CatalogTable, place: str) -> datafusion.DataFrame:
    """All rows of a table's Parquet files, with exactly its schema.

    Args:
        place: the scheme and the bucket under which the session has an object store for them.
    """
    provider = RemoteFiles(table, place)
    options = FeedOptions(
        table.schema,
        "parquet",
        partition_columns=table.partitions,
        bytes=provider.bytes,
        scan_options=READ_INT96,
    )
    count = "1 Parquet file" if len(table.files) == 1 else f"{len(table.files):,} Parquet files"
    note = f"table {table.name}: {count} at {place}, read by DataFusion"
    shown = quote_name(table.name)
    return feeds.read(shown, WorkUnitFeed(provider), options, note)


class RemoteFiles(WorkUnitFeedProvider):
    """The files of a table, with the values of their partitions."""

    def __init__(self, table: CatalogTable, place: str) -> None:
        self.bytes = sum(file.size for file in table.files)
        self._units = []
        kinds = [table.schema.field(name).type for name in table.partitions]
        own = place_of(table.files) or place
        for file in table.files:
            texts = zip(table.partitions, kinds, file.values, strict=True)
            values = {name: pa.scalar(text, pa.string()).cast(kind).as_py() for name, kind, text in texts}
            self._units.append(FileUnit(place + file.path.removeprefix(own), file.size, partition_values=values))

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[FileUnit]:
        kept = context.keeps_each([unit.partition_values for unit in self._units])
        for unit, keep in zip(self._units, kept, strict=True):
            if keep:
                yield unit
            else:
                context.count("pruned")
