"""Writing rows to files: the query runs distributed, DataFusion's own sink writes, in this process.

A sink does not survive the wire format: timestamps come out empty in CSV, metadata is lost in Parquet. So it never
travels. The rows are gathered in the store first, then a COPY over them does what the user asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike

import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import UserError, clean_message
from sparkfusion.exchange.sink import FileSink
from sparkfusion.exchange.store import LocalStore
from sparkfusion.ids import QueryId, TaskKey
from sparkfusion.session.query import RunningQuery
from sparkfusion.worker.run_task import PrepareContext
from sparkfusion.worker.session import session_config
from sparkfusion.worker.task import TaskReport

_ROWS = "sparkfusion_rows"


@dataclass(frozen=True)
class WriteTarget:
    format: str
    path: str | PathLike[str]
    options: Mapping[str, str]
    partition_by: tuple[str, ...] = ()


def copy_tail(target: WriteTarget) -> str:
    """What follows the source in a COPY.

    >>> print(copy_tail(WriteTarget("CSV", "/x/it's", {"format.has_header": "true"}, ("k",))))
    TO '/x/it''s' STORED AS CSV PARTITIONED BY (k) OPTIONS ('format.has_header' 'true')
    """
    text = f"TO {_quoted(os.fspath(target.path))} STORED AS {target.format}"
    if target.partition_by:
        for name in target.partition_by:
            _check_plain(name)
        text += f" PARTITIONED BY ({', '.join(target.partition_by)})"
    if target.options:
        options = ", ".join(f"{_quoted(name)} {_quoted(value)}" for name, value in target.options.items())
        text += f" OPTIONS ({options})"
    return text


class WriteJob:
    """A job whose one frame is the count of written rows. The query behind it starts with the first `next_frame`."""

    def __init__(
        self,
        query: QueryId,
        start: Callable[[], RunningQuery],
        tail: str,
        options: dict[str, str],
        *,
        store_dir: str,
        prepare: PrepareContext,
    ) -> None:
        self._query = query
        self._start = start
        self._tail = tail
        self._options = options
        self._store_dir = store_dir
        self._prepare = prepare
        self._running: RunningQuery | None = None
        self._done = False

    def next_frame(self) -> pa.RecordBatch | None:
        if self._done:
            return None
        self._done = True
        store = LocalStore(self._query, memory_budget=0, directory=self._store_dir)
        try:
            directory = self._gather(store)
            return self._copy(directory)
        finally:
            store.close()

    def cancel(self, reason: str = "the query was cancelled") -> None:
        del reason
        if self._running is not None:
            self._running.cancel()

    def close(self) -> None:
        if self._running is not None:
            self._running.close()

    def reports(self) -> list[TaskReport]:
        return self._running.reports() if self._running is not None else []

    def _gather(self, store: LocalStore) -> str:
        """All rows of the query, in their order, in files of one directory."""
        key = TaskKey(self._query, 0, 0)
        sink = FileSink(key, store)
        with self._start() as self._running:
            for batch in self._running:
                sink.write(0, batch)
            if self._running.rows == 0:
                sink.write_empty(self._running.schema)
        sink.finish()
        return str(store.attempt_directory(key, in_memory=False))

    def _copy(self, directory: str) -> pa.RecordBatch:
        """One partition and no splitting of files keep the order of the rows."""
        whole = {
            "datafusion.execution.target_partitions": "1",
            "datafusion.optimizer.repartition_file_scans": "false",
        }
        context = SessionContext(session_config(self._options | whole))
        self._prepare(context)
        try:
            context.register_arrow(_ROWS, directory)
            (counted,) = context.sql(f"COPY {_ROWS} {self._tail}").collect()
        except Exception as error:
            raise UserError(f"cannot write {self._tail}: {clean_message(error)}") from error
        return counted


def _check_plain(column: str) -> None:
    """DataFusion takes quotes in PARTITIONED BY for a part of the name, so only plain names can be said there."""
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", column):
        raise UserError(
            f"cannot partition by {column!r}: COPY takes plain lower-case names only",
            hint="rename the column, or pass write_options=DataFrameWriteOptions(partition_by=[...])",
        )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
