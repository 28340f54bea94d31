"""Write frames: Arrow IPC files that DataFusion's own scan can read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

_VIEW_SLACK = 64 * 1024
_MESSAGE_BYTES = 32 * 1024 * 1024


def write_options(compression: str) -> pa.ipc.IpcWriteOptions:
    return pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)


class FrameFileWriter:
    """One Arrow IPC file being written. Not shared between threads; `close` makes it readable, `abort` removes it."""

    def __init__(self, path: Path, schema: pa.Schema, options: pa.ipc.IpcWriteOptions) -> None:
        self.path = path
        self.rows = 0
        self._file = pa.OSFile(str(path), "wb")
        try:
            self._writer = pa.ipc.new_file(self._file, schema, options=options)
        except BaseException:
            self._file.close()
            raise

    def write(self, batch: pa.RecordBatch) -> int:
        """Append one frame; returns the bytes it took."""
        before = self._file.tell()
        self._writer.write_batch(batch)
        self.rows += batch.num_rows
        return int(self._file.tell() - before)

    def close(self) -> int:
        """Finish the file; returns its size."""
        self._writer.close()
        size = int(self._file.tell())
        self._file.close()
        return size

    def abort(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)


def has_dictionaries(schema: pa.Schema) -> bool:
    """Whether a column is dictionary-encoded, at any depth. Arrow's file format allows only one dictionary per
    column."""
    return any(_contains_dictionary(field.type) for field in schema)


def _contains_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    return any(_contains_dictionary(kind.field(i).type) for i in range(kind.num_fields))


def compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Drop bytes that view columns hold and do not use.

    A string view column that passed a filter still holds the buffers of all rows it came from, and an IPC frame
    writes whole buffers. Only columns that hold far more than their rows need are copied.
    """
    columns = batch.columns
    changed = False
    for index, column in enumerate(columns):
        plain = _plain_type(column.type)
        if plain is None or _held_bytes(column) <= 64 * len(column) + _VIEW_SLACK:
            continue
        columns[index] = column.cast(plain).cast(column.type)
        changed = True
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema) if changed else batch


def _plain_type(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(kind) else None


def _held_bytes(column: pa.Array) -> int:
    return sum(buffer.size for buffer in column.buffers()[2:] if buffer is not None)


def frames_of(batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions) -> Iterator[pa.Buffer]:
    """A batch as Arrow streams of a bounded size, each with its schema and dictionaries."""
    if batch.nbytes > _MESSAGE_BYTES and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from frames_of(batch.slice(0, half), options)
        yield from frames_of(batch.slice(half), options)
        return
    target = pa.BufferOutputStream()
    with pa.ipc.new_stream(target, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    yield target.getvalue()


def batch_of(frame: memoryview) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(frame)) as reader:
        return reader.read_next_batch()
