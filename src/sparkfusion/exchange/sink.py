"""Sinks: the output of a task, to files of a store or to the consumer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from sparkfusion.errors import StoreFullError
from sparkfusion.exchange.frames import FrameFileWriter, compact, has_dictionaries, write_options
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.exchange.store import FrameStore
from sparkfusion.ids import TaskKey

_FLUSH_ROWS = 256 * 1024
_NO_SPACE = 28


class Sink(Protocol):
    """The output of one task attempt. Called by one thread; exactly one of `finish` and `abort` ends it."""

    def write(self, partition: int, batch: pa.RecordBatch) -> None: ...

    def finish(self) -> Manifest:
        """Make everything readable and return the manifest. This commits nothing: the coordinator does."""
        ...

    def abort(self) -> None:
        """Leave nothing behind. Safe after a failed `finish`."""
        ...


class ConsumerSink:
    """Passes every frame to the consumer at once, waiting while there is no room."""

    def __init__(self, key: TaskKey, rows: Callable[[pa.RecordBatch], None]) -> None:
        self._key = key
        self._rows = rows

    def write(self, partition: int, batch: pa.RecordBatch) -> None:
        del partition  # a consumer has only one
        self._rows(batch)

    def finish(self) -> Manifest:
        return Manifest(self._key)

    def abort(self) -> None:
        return


class FileSink:
    """Writes frames to files of a store, at least one for each partition that has rows."""

    def __init__(self, key: TaskKey, store: FrameStore, compression: str = "none") -> None:
        self._key = key
        self._store = store
        self._options = write_options(compression)
        self._partitions: dict[int, _PartitionWriter] = {}

    def write(self, partition: int, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        with _naming_a_full_disk(self._store.base):
            self._writer_of(partition).write(compact(batch))

    def _writer_of(self, partition: int) -> _PartitionWriter:
        if partition not in self._partitions:
            self._partitions[partition] = _PartitionWriter(self._key, partition, self._store, self._options)
        return self._partitions[partition]

    def write_empty(self, schema: pa.Schema) -> None:
        """Write one file without rows, for a consumer that reads the schema from the files."""
        self._writer_of(0).write(pa.RecordBatch.from_pylist([], schema=schema))

    def finish(self) -> Manifest:
        with _naming_a_full_disk(self._store.base):
            files = [file for _, writer in sorted(self._partitions.items()) for file in writer.finish()]
        return Manifest(self._key, tuple(files))

    def abort(self) -> None:
        for writer in self._partitions.values():
            writer.abort()
        self._store.discard(self._key)


class _PartitionWriter:
    """The files of one output partition: a new one when the memory budget is used up, or for a new dictionary."""

    def __init__(self, key: TaskKey, partition: int, store: FrameStore, options: pa.ipc.IpcWriteOptions) -> None:
        self._key = key
        self._partition = partition
        self._store = store
        self._options = options
        self._open: FrameFileWriter | None = None
        self._open_in_memory = False
        self._done: list[FrameFile] = []
        self._held: list[pa.RecordBatch] = []
        self._held_rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        if not has_dictionaries(batch.schema):
            self._append(batch)
            return
        self._held.append(batch)
        self._held_rows += batch.num_rows
        if self._held_rows >= _FLUSH_ROWS:
            self._flush_held()

    def finish(self) -> list[FrameFile]:
        self._flush_held()
        self._close_open()
        return self._done

    def abort(self) -> None:
        if self._open is not None:
            self._open.abort()
            self._open = None

    def _append(self, batch: pa.RecordBatch) -> None:
        if self._open is not None and self._open_in_memory and not self._store.has_memory():
            self._close_open()
        if self._open is None:
            self._open = self._new_file(batch.schema)
        size = self._open.write(batch)
        if self._open_in_memory:
            self._store.took(self._key, size)

    def _new_file(self, schema: pa.Schema) -> FrameFileWriter:
        self._open_in_memory = self._store.has_memory()
        directory = self._store.attempt_directory(self._key, in_memory=self._open_in_memory)
        return FrameFileWriter(directory / f"{self._partition}-{len(self._done):06d}.arrow", schema, self._options)

    def _close_open(self) -> None:
        if self._open is not None:
            size = self._open.close()
            self._done.append(FrameFile(str(self._open.path), self._partition, self._open.rows, size))
            self._open = None

    def _flush_held(self) -> None:
        """Write the held frames with one common dictionary, each time to a file of its own."""
        if not self._held:
            return
        try:
            frames = pa.Table.from_batches(self._held).unify_dictionaries().to_batches()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # nested dictionaries, or too many values
            frames = self._held
        single_file = frames is not self._held
        for frame in frames:
            self._append(frame)
            if not single_file:
                self._close_open()
        self._close_open()
        self._held, self._held_rows = [], 0


class _naming_a_full_disk:  # noqa: N801
    """Turns "no space left" into an error that says where and what to do."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and error.errno == _NO_SPACE:
            raise StoreFullError(
                f"no space is left for intermediate data in {self._directory}",
                hint="free some space, or set sparkfusion.store_dir to a directory with more room",
            ) from error
