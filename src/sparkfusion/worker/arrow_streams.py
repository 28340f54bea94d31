"""Arrow files in the stream format. DataFusion's plans scan only the file format, so the rows are rewritten to that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from sparkfusion.errors import SparkfusionError, UserError, first_words
from sparkfusion.feed.ready.file_access import open_path
from sparkfusion.feed.units import FileUnit, WorkUnit
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.unit_files import Chunk, FeedInput, file_chunks, iterate_until_cancelled, partition_values
from sparkfusion.worker.unit_rows import Spool

_FILE_FORMAT = b"ARROW1"


def is_stream(path: str) -> bool:
    """Whether an Arrow file is in the stream format. False for a file that cannot be opened: the scan will say why."""
    try:
        with open_path(path) as file:
            return bytes(file.read(len(_FILE_FORMAT))) != _FILE_FORMAT
    except (SparkfusionError, OSError, pa.ArrowException):
        return False


def arrow_chunks(units: Iterable[WorkUnit], feed: FeedInput, directory: Path, cancel: CancelToken) -> Iterator[Chunk]:
    """Chunks of Arrow files in either of the two formats."""
    plain: list[WorkUnit] = []
    for unit in units:
        if isinstance(unit, FileUnit) and is_stream(unit.path):
            yield from _rewrite(unit, feed, directory, cancel)
        else:
            plain.append(unit)
    yield from file_chunks(plain, feed)


def _rewrite(unit: FileUnit, feed: FeedInput, directory: Path, cancel: CancelToken) -> Iterator[Chunk]:
    """A stream is read from its beginning, so the first part of a split file gets all rows and the others none."""
    if unit.range is not None and unit.range[0] > 0:
        return
    values = partition_values(unit, feed)
    try:
        with open_path(unit.path) as file, pa.ipc.open_stream(file) as reader:
            spool = Spool(directory, reader.schema)
            for batch in iterate_until_cancelled(reader, cancel):
                spool.add(batch)
                if spool.is_full:
                    yield from _with_values(spool.chunk(), values)
            yield from _with_values(spool.chunk(), values)
    except (pa.ArrowException, OSError) as error:
        raise UserError(
            f"the feed of table {feed.table!r}: {unit.path!r} is not an Arrow file: {first_words(error)}",
            hint="it is in neither the file format nor the stream format; it may be damaged",
        ) from error


def _with_values(chunks: Iterator[Chunk], values: tuple[bytes, ...]) -> Iterator[Chunk]:
    for store, files in chunks:
        yield store, [replace(file, values=values) for file in files]
