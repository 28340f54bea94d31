"""Results as one Parquet or Arrow file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TextIO

import pyarrow as pa

from sparkfusion.errors import UserError

BinaryFormat = Literal["parquet", "arrow"]


def write_binary(
    schema: pa.Schema, names: list[str], batches: Iterable[pa.RecordBatch], out: TextIO, form: BinaryFormat
) -> int:
    """Write the rows, batch by batch, and return their number. A statement without columns writes nothing."""
    if out.isatty():
        raise UserError(f"a terminal cannot show {form}", hint=f"give a file: -o result.{form}")
    if not names:
        return sum(batch.num_rows for batch in batches)
    if out.buffer.seekable() and out.buffer.tell():
        raise UserError(f"a {form} file holds the result of one statement", hint="write each result to its own file")
    written = pa.schema([field.with_name(name) for name, field in zip(names, schema, strict=True)])
    count = 0
    with _open_writer(form, out.buffer, written) as writer:
        for batch in batches:
            writer.write_batch(batch.rename_columns(names))
            count += batch.num_rows
    return count


def _open_writer(form: BinaryFormat, sink: object, schema: pa.Schema) -> Any:
    if form == "arrow":
        return pa.ipc.new_file(sink, schema)
    import pyarrow.parquet as pq

    return pq.ParquetWriter(sink, schema)
