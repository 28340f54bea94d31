"""What comes into a Spark task, in any order: its record, chunks of frames, and rows of Spark DataFrames.

The rows come as Arrow messages; they are written to files that the task's plan scans.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sparkfusion.errors import InternalError
from sparkfusion.exchange.frames import FrameFileWriter, write_options
from sparkfusion.ids import SourceFile, TableId
from sparkfusion.plan.table_parts import bind_tables
from sparkfusion.runner.spark.chunks import ChunkSpool, is_chunk
from sparkfusion.runner.spark.spark_task import TableInput, TaskWiring, marked_table, task_of
from sparkfusion.worker.task import TaskOrder


@dataclass(frozen=True)
class Received:
    order: TaskOrder
    wiring: TaskWiring
    chunks: ChunkSpool
    tables: TableMessages


def receive(records: Iterable[bytes], directory: Path) -> Received:
    """Read everything that Spark gives the task: Spark ends a worker that leaves some of it unread."""
    chunks, tables = ChunkSpool(directory), TableMessages(directory)
    task: bytes | None = None
    incoming = iter(records)
    for record in incoming:
        if is_chunk(record):
            chunks.add(record)
            continue
        (own,) = pickle.loads(record)
        table = marked_table(own)
        if table is not None:
            tables.add(table, next(incoming))
        elif task is None:
            task = own
    if task is None:
        raise InternalError("a Spark task got no record")
    return Received(*task_of(task), chunks, tables)


class TableMessages:
    """The Arrow messages of one task, below a directory that the caller removes.

    Messages may come before the task's record, which has the schema. So they are written unchanged, and decoded later.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sizes: dict[TableId, list[int]] = defaultdict(list)

    def add(self, table: TableId, message: bytes) -> None:
        with open(self._raw(table), "ab") as target:
            target.write(message)
        self._sizes[table].append(len(message))

    def bind(self, plan: bytes, tables: Sequence[TableInput]) -> bytes:
        """The plan over the rows that came. The first part of a table gets all its rows; the other parts are empty."""
        if not tables:
            return plan
        files = {each.table: (each.parts[0], self._file(each)) for each in tables}

        def file_of(table: TableId, part: int) -> SourceFile | None:
            first, file = files[table]
            return file if part == first else None

        return bind_tables(plan, file_of)

    def _file(self, table: TableInput) -> SourceFile | None:
        if not self._sizes[table.table]:
            return None
        schema = pa.ipc.read_schema(pa.py_buffer(table.schema))
        writer = FrameFileWriter(self._directory / f"table-{table.table}.arrow", schema, write_options("none"))
        with open(self._raw(table.table), "rb") as source:
            for size in self._sizes[table.table]:
                writer.write(pa.ipc.read_record_batch(pa.py_buffer(source.read(size)), schema))
        written = writer.close()
        self._raw(table.table).unlink()
        return SourceFile(str(writer.path), written)

    def _raw(self, table: TableId) -> Path:
        return self._directory / f"table-{table}.messages"
