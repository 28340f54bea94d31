"""Units that are not files: the user's reader turns them into rows, which are written to an Arrow file for the scan."""

from __future__ import annotations

import asyncio
import inspect
import os
import tempfile
from collections.abc import AsyncIterable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from sparkfusion.errors import UserError, classify, first_words
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.exchange.store import SHARED_MEMORY
from sparkfusion.feed.feed import iterate
from sparkfusion.feed.provider import Reader, ReaderContext
from sparkfusion.feed.rejected import Rejects
from sparkfusion.feed.units import FileUnit, WorkUnit
from sparkfusion.plan.feed_scans import UnitFile
from sparkfusion.plan.sources import object_path
from sparkfusion.urls import LOCAL_STORE
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.unit_files import Chunk, FeedInput, iterate_until_cancelled

_CHUNK_BYTES = 32 * 1024 * 1024
_FULL_BATCH_ROWS = 8192
_SHOWN_UNIT = 120


def row_chunks(
    units: Iterable[WorkUnit],
    feed: FeedInput,
    reader: Reader,
    directory: Path,
    cancel: CancelToken,
    rejects: Rejects,
) -> Iterator[Chunk]:
    """The rows that the reader returns for units, in Arrow files. A file is removed when the next chunk is asked for.

    A cancelled task stops at the reader's next batch.
    """
    schema = feed.arrow_schema()
    context = ReaderContext(feed.table, schema, feed.columns, feed.headers, rejects)
    spool = Spool(directory, schema)
    for unit in units:
        for batch in iterate_until_cancelled(_rows(reader, unit, context), cancel):
            spool.add(batch)
            if spool.is_full:
                yield from spool.chunk()
    yield from spool.chunk()


@contextmanager
def unit_directory(spills: str) -> Iterator[Path]:
    """A directory for rows of units, removed at the end: below the task's spill directory if it has one, otherwise in
    memory-backed storage."""
    if spills:
        with tempfile.TemporaryDirectory(prefix="units-", dir=spills) as made:
            yield Path(made)
        return
    base = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    with closing(OwnedDirectory("units", base)) as owned:
        yield owned.path


class Spool:
    """Arrow files that are filled first, and then scanned together."""

    def __init__(self, directory: Path, schema: pa.Schema) -> None:
        self._directory = directory
        self._schema = schema
        self._small: list[pa.RecordBatch] = []
        self._small_rows = 0
        self._files: list[Path] = []
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        return self._bytes >= _CHUNK_BYTES

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows. Small batches are combined: a million units may return one row each."""
        self._small.append(batch)
        self._small_rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._small_rows >= _FULL_BATCH_ROWS:
            self._write()

    def _write(self) -> None:
        """Write the rows to a new file each time: one file cannot have several dictionaries for a column."""
        path = self._directory / f"{len(self._files)}.arrow"
        with pa.ipc.new_file(str(path), self._schema) as writer:
            writer.write_table(pa.Table.from_batches(self._small, self._schema).combine_chunks())
        self._files.append(path)
        self._small, self._small_rows = [], 0

    def chunk(self) -> Iterator[Chunk]:
        if self._small_rows:
            self._write()
        if self._files:
            yield LOCAL_STORE, [UnitFile(object_path(str(path)), path.stat().st_size) for path in self._files]
        for path in self._files:
            path.unlink()
        self._files, self._bytes = [], 0


def _rows(reader: Reader, unit: WorkUnit, context: ReaderContext) -> Iterator[pa.RecordBatch]:
    """The rows that the reader returns for a unit, under the table's schema. Errors name the table and the unit."""
    try:
        for part in _parts(reader(unit, context)):
            yield conform(part, context)
    except GeneratorExit:
        raise
    except BaseException as error:  # a reader that exits must not look like a worker that does
        found = classify(error)
        words = found.message if found is error else f"{type(error).__name__}: {first_words(error)}"
        shown = repr(unit.path if isinstance(unit, FileUnit) else unit.payload)
        shown = shown if len(shown) <= _SHOWN_UNIT else shown[:_SHOWN_UNIT] + "…"
        raise type(found)(f"the reader of table {context.table!r} failed on unit {shown}: {words}") from error


def _parts(made: Any) -> Iterator[pa.RecordBatch]:
    if made is None:
        return
    if isinstance(made, pa.RecordBatch):
        yield made
    elif isinstance(made, pa.Table):
        yield from made.to_batches()
    elif hasattr(made, "__arrow_c_stream__"):  # frames of pandas, Polars and others
        yield from pa.RecordBatchReader.from_stream(made)
    elif inspect.iscoroutine(made):
        yield from _parts(asyncio.run(made))
    elif isinstance(made, AsyncIterable):
        for part in iterate(made):
            yield from _parts(part)
    elif isinstance(made, Iterable) and not isinstance(made, str | bytes | Mapping):
        for part in made:
            yield from _parts(part)
    else:
        raise UserError(f"it returned a {type(made).__qualname__}, not record batches")


def conform(batch: pa.RecordBatch, context: ReaderContext) -> pa.RecordBatch:
    """The batch under the table's schema: columns are matched by name, and cast if the cast loses nothing. Columns that
    the query does not read may be missing."""
    if batch.schema.equals(context.schema):
        return batch
    columns = []
    for wanted in context.schema:
        index = batch.schema.get_field_index(wanted.name)
        if index < 0:
            if wanted.name in context.projection:
                raise UserError(f"the rows have no column {wanted.name!r}, which the query uses")
            columns.append(pa.nulls(batch.num_rows, wanted.type))
            continue
        column = batch.column(index)
        try:
            columns.append(column if column.type == wanted.type else column.cast(wanted.type))
        except pa.ArrowInvalid as error:
            raise UserError(f"column {wanted.name!r} is {column.type}, not {wanted.type}: {error}") from error
        except pa.ArrowNotImplementedError as error:
            raise UserError(f"column {wanted.name!r} is {column.type}, not {wanted.type}") from error
    if not columns:
        return batch
    return pa.RecordBatch.from_arrays(columns, schema=context.schema)
