"""RowGroups: parts of large Parquet files as units, so that one file can keep several tasks busy."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from sparkfusion.errors import SparkfusionError, UserError, first_words
from sparkfusion.feed.provider import FeedContext, Reader, WorkUnitFeedProvider
from sparkfusion.feed.ready.file_access import open_path
from sparkfusion.feed.ready.files import Files, Paths
from sparkfusion.feed.ready.hive import HiveColumn
from sparkfusion.feed.ready.walk import DirectorySortOrder, FileSortOrder
from sparkfusion.feed.units import FileUnit

TARGET_BYTES = 64 * 1024 * 1024


class RowGroups(WorkUnitFeedProvider):
    """Row groups of Parquet files, combined into units of about `target_bytes`.

    DataFusion reads the row groups that begin in a unit's range of bytes; the ranges of a file cover it without a gap,
    so every row group is read once. Footers of files larger than `target_bytes` are read, one at a time, when units
    are wanted.

    Args:
        source: paths as for `Files`, whose other arguments may be given too; or another feed of Parquet files.
        target_bytes: the most bytes of a unit that has several row groups. A unit has at least one.
    """

    format = "parquet"
    reader: Reader | None = None

    def __init__(
        self,
        source: Paths | WorkUnitFeedProvider,
        *,
        target_bytes: int = TARGET_BYTES,
        schema: pa.Schema | None = None,
        recursive: bool = True,
        order: FileSortOrder | None = None,
        directory_order: DirectorySortOrder | None = None,
        hive: bool | Sequence[HiveColumn] = True,
        filesystem: fs.FileSystem | None = None,
    ) -> None:
        if target_bytes < 1:
            raise UserError(f"target_bytes must be at least 1, not {target_bytes!r}")
        make = partial(Files, format="parquet", schema=schema, recursive=recursive, order=order)
        made: Any = (
            source
            if isinstance(source, WorkUnitFeedProvider)
            else make(source, directory_order=directory_order, hive=hive, filesystem=filesystem)
        )
        if getattr(made, "format", None) != "parquet":
            raise UserError(f"{type(made).__qualname__} is not a feed of Parquet files")
        self._source = made
        self._open = getattr(made, "open", open_path)
        self._target = target_bytes
        self.partitions, self.tasks, self.rows, self.bytes = made.partitions, made.tasks, made.rows, made.bytes

    @property
    def partition_columns(self) -> Sequence[Any]:
        return tuple(getattr(self._source, "partition_columns", ()))

    def schema(self) -> pa.Schema:
        own = getattr(self._source, "schema", None)
        return own() if callable(own) else own

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[FileUnit]:
        found = self._source.feed(partition, context)
        if isinstance(found, AsyncIterable):
            raise UserError(f"row groups of an asynchronous feed ({type(self._source).__qualname__}) are not supported")
        for unit in found:
            if context.stopped:
                return
            yield from self._parts(unit, context)

    def close(self) -> None:
        self._source.close()

    def _parts(self, unit: FileUnit, context: FeedContext) -> Iterator[FileUnit]:
        if unit.range is not None or (unit.size is not None and unit.size <= self._target):
            yield unit
            return
        size, starts = self._footer(unit.path)
        context.count("footers")
        for span in ranges(starts, size, self._target):
            yield FileUnit(unit.path, size, range=span, partition_values=unit.partition_values, hosts=unit.hosts)

    def _footer(self, path: str) -> tuple[int, list[int]]:
        try:
            with self._open(path) as file, pq.ParquetFile(file) as parquet:
                metadata = parquet.metadata
                return file.size(), [_start(metadata.row_group(at)) for at in range(metadata.num_row_groups)]
        except SparkfusionError:
            raise
        except Exception as error:
            raise UserError(f"cannot read the footer of {path!r}: {first_words(error)}") from error


def ranges(starts: Sequence[int], size: int, target: int) -> list[tuple[int, int]]:
    """Ranges of bytes that cover a file, each with whole row groups up to about `target` bytes.

    >>> ranges([4, 104, 204, 304], 400, 200)
    [(0, 204), (204, 400)]
    """
    edges = [*sorted(starts), size]
    cuts, begin = [0], edges[0]
    for start, end in pairwise(edges[1:]):
        if end - begin > target and start > begin:
            cuts.append(start)
            begin = start
    return list(zip(cuts, [*cuts[1:], size], strict=True))


def _start(group: Any) -> int:
    """The offset at which a row group begins for DataFusion: that of the first page of its first column."""
    if not group.num_columns:
        return 0
    column = group.column(0)
    first = column.dictionary_page_offset
    return int(first if first is not None else column.data_page_offset)
