"""What comes into a Spark task: its record, chunks of frames, rows of tables, in any order."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sparkfusion.errors import InternalError
from sparkfusion.exchange.chunks import ChunkSpool, is_chunk
from sparkfusion.runner.spark.order import TaskWiring, marked_table, task_of
from sparkfusion.runner.spark.table_spool import TableSpool
from sparkfusion.worker.task import TaskOrder


@dataclass(frozen=True)
class Received:
    order: TaskOrder
    wiring: TaskWiring
    chunks: ChunkSpool
    tables: TableSpool


def receive(records: Iterable[bytes], directory: Path) -> Received:
    """Read everything that Spark gives the task: a worker that leaves some of it unread is thrown away by Spark."""
    chunks, tables = ChunkSpool(directory), TableSpool(directory)
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
