"""Read lines of CSV and JSON files as rows of a table, and skip those that cannot be read."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from sparkfusion.errors import UserError
from sparkfusion.feed.provider import ReaderContext
from sparkfusion.feed.ready.file_access import open_path, refuse_compressed
from sparkfusion.feed.ready.sieve import LineFormat, Stopped, open_sieve
from sparkfusion.feed.units import FileUnit, WorkUnit
from sparkfusion.wording import shorten

_BLOCK_BYTES = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

NumberedLine = tuple[int, bytes]
"""The number of a line in its file, and its text."""


@dataclass(frozen=True)
class LineReader:
    """A reader of whole files. It reports every line that it skips to its context.

    Attributes:
        schema: the schema of the files, without partition columns, whose values come with the units.
    """

    format: LineFormat
    schema: pa.Schema

    def __call__(self, unit: WorkUnit, context: ReaderContext) -> Iterator[pa.RecordBatch]:
        if not isinstance(unit, FileUnit):
            raise UserError("on_error='skip' reads only files, and this unit is not a file")
        if unit.range is not None:
            raise UserError("on_error='skip' reads only whole files, and this unit is a part of a file")
        refuse_compressed(unit.path)
        with open_path(unit.path) as file, open_sieve(self.format) as sieve:
            for block in row_blocks(file, self.format):
                texts = [text for _, text in block]
                for found in sieve.sift(texts, self.schema):
                    if isinstance(found, Stopped):
                        line, text = block[found.at]
                        context.reject(unit.path, line, shorten(text.decode(errors="replace")), found.why)
                    else:
                        yield from _with_partitions(found.rows, unit, context).to_batches()


def row_blocks(file: Any, format: LineFormat) -> Iterator[list[NumberedLine]]:
    """The lines of a file that are rows, in blocks of about a mebibyte."""
    header, count = format.has_header, 0
    for texts in _texts(file):
        if count == 0 and format.csv is not None:
            texts[0] = texts[0].removeprefix(_BYTE_ORDER_MARK)
        rows = list(enumerate(texts, count + 1))
        if not format.are_rows(texts):
            rows = [line for line in rows if format.are_rows([line[1]])]
        count += len(texts)
        if header and rows:
            rows, header = rows[1:], False
        if rows:
            yield rows


def first_rows(file: Any, format: LineFormat, most: int) -> list[bytes]:
    """The first lines, the header included, from which the schema is inferred."""
    texts = (text for block in _texts(file) for text in block)
    return list(itertools.islice((text for text in texts if format.are_rows([text])), most))


def _texts(file: Any) -> Iterator[list[bytes]]:
    rest = b""
    while block := file.read(_BLOCK_BYTES):
        whole, newline, rest = (rest + block).rpartition(b"\n")
        if newline:
            yield (whole + newline).splitlines()
    if rest:
        yield rest.splitlines()


def _with_partitions(rows: pa.Table, unit: FileUnit, context: ReaderContext) -> pa.Table:
    for name, value in unit.partition_values.items():
        text = value.decode() if isinstance(value, bytes) else value
        column = pa.scalar(text, pa.string()).cast(context.schema.field(name).type)
        rows = rows.append_column(name, pa.repeat(column, rows.num_rows))
    return rows
