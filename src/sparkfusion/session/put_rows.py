"""Write the rows of a query into an in-memory table: all rows are computed first, then stored at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import UserError
from sparkfusion.ids import new_query_id
from sparkfusion.session.changes import OVERWRITE, Change
from sparkfusion.session.counting_job import CountingJob, count_frame
from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.query import RunningQuery

_one_at_a_time = threading.Lock()


class PutJob(CountingJob):
    """Puts the rows of the query that it starts into a table."""

    def __init__(self, start: Callable[[], RunningQuery], put: Callable[[pa.Table], None]) -> None:
        super().__init__()
        self._start = start
        self._put = put

    def write(self) -> pa.RecordBatch:
        rows = self.begin(self._start).read_all()
        self.check_stopped()
        self._put(rows)
        return count_frame(rows.num_rows)


def put_rows(context: SessionContext, change: Change, rows: pa.Table) -> None:
    """Add rows to an in-memory table, or replace the rows it has. An error leaves the table unchanged.

    Views and DataFrames over the table must stay valid. So its rows are removed, and not the table.
    """
    table = change.into
    assert table is not None
    found = call_datafusion(context.sql, f"SELECT * FROM {table}")
    _refuse_nulls(change, found.schema(), rows)
    with _one_at_a_time:
        if change.operation != OVERWRITE:
            return _insert(context, table, rows.to_batches())
        old = call_datafusion(found.collect)
        _remove(context, table)
        try:
            _insert(context, table, rows.to_batches())
        except BaseException:
            _remove(context, table)
            _insert(context, table, old)
            raise


def _remove(context: SessionContext, table: str) -> None:
    call_datafusion(call_datafusion(context.sql, f"DELETE FROM {table}").collect)


def _insert(context: SessionContext, table: str, batches: list[pa.RecordBatch]) -> None:
    if not batches:
        return
    name = f"sparkfusion_rows_{new_query_id()}"
    context.register_record_batches(name, [batches])
    try:
        call_datafusion(call_datafusion(context.sql, f"INSERT INTO {table} SELECT * FROM {name}").collect)
    finally:
        context.deregister_table(name)


def _refuse_nulls(change: Change, schema: pa.Schema, rows: pa.Table) -> None:
    for field, column in zip(schema, rows.columns, strict=True):
        if not field.nullable and column.null_count:
            raise UserError(
                f"cannot run {change}: column {field.name!r} must not be NULL, but the new rows have NULLs: "
                f"{column.null_count}",
                hint="leave them out with WHERE … IS NOT NULL, or give a value with coalesce",
            )
