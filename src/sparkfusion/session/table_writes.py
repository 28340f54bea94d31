"""Write to tables: INSERT OVERWRITE, which DataFusion 55 does not support, and `DataFrame.write_table`."""

from __future__ import annotations

from dataclasses import replace

import datafusion
import pyarrow as pa

from sparkfusion.errors import UserError, clean_message
from sparkfusion.ids import new_query_id
from sparkfusion.session.changes import INSERT_INTO, OVERWRITE, Change, find_change
from sparkfusion.session.datafusion_calls import call_datafusion
from sparkfusion.session.engine import Engine
from sparkfusion.session.external_statement import REFERENCE
from sparkfusion.session.lazy_query import LazyQuery
from sparkfusion.session.sql_names import quote_name
from sparkfusion.session.write_modes import WriteMode

_IN_MEMORY = "DataSinkExec: sink=MemoryTable"
_OF_FILES = ("DataSinkExec: sink=ParquetSink", "DataSinkExec: sink=CsvSink", "DataSinkExec: sink=JsonSink",
             "DataSinkExec: sink=ArrowFileSink")  # fmt: skip
_INSTEAD = "write_parquet, write_csv and write_json write to a path, with the same modes"


def read_change(engine: Engine, inner: datafusion.DataFrame) -> LazyQuery:
    """A query, or a statement that changes a table, with what it changes. This makes INSERT OVERWRITE work, and INSERT
    INTO for tables that would not read the files of DataFusion's own INSERT."""
    change = find_change(engine.context, inner)
    if change is None or change.operation not in (OVERWRITE, INSERT_INTO):
        return LazyQuery(inner, changes=change)
    table = ".".join(map(quote_name, change.table.split(".")))
    made = engine.tables.directories.find(table)
    if change.operation == INSERT_INTO and (made is None or made.reads_inserts):
        return LazyQuery(inner, changes=change)
    if "." in change.table and engine.context.table_exist(quote_name(change.table)):
        raise UserError(f"cannot run {change}: the name contains a dot", hint="give the table another name")
    return _store(engine, inner, change, table)


def write_table(engine: Engine, source: LazyQuery, name: str, mode: WriteMode) -> int:
    """Write the rows of a query to a table; returns their count."""
    table = name if REFERENCE.fullmatch(name) else quote_name(name)
    if not engine.context.table_exist(table):
        if mode == "append":
            raise UserError(f"there is no table {name!r} to append to", hint="mode='error' creates one in memory")
        return _create(engine, source, table)
    if mode == "ignore":
        return 0
    if mode == "error":
        raise UserError(f"table {name!r} exists", hint="mode='overwrite' replaces its rows, mode='append' adds to them")
    stored = _insert(engine, source, table, "OVERWRITE" if mode == "overwrite" else "INTO")
    return int(engine.start(stored).read_all().column(0)[0].as_py())


def _create(engine: Engine, source: LazyQuery, table: str) -> int:
    rows = engine.start(source).read_all()
    batches = rows.to_batches() or [pa.RecordBatch.from_pylist([], schema=rows.schema)]
    engine.context.register_record_batches(table, [batches])
    engine.tables.in_memory.adopt([table])
    return int(rows.num_rows)


def _insert(engine: Engine, source: LazyQuery, table: str, word: str) -> LazyQuery:
    """Insert by name: the query's columns go to the table's columns of the same name."""
    _refuse_other_columns(table, engine.context.table(table).schema().names, source.schema.names)
    columns = ", ".join(map(quote_name, source.schema.names))
    view = f"sparkfusion_rows_{new_query_id()}"
    engine.context.register_view(view, source.inner)
    try:
        text = f"INSERT {word} {table} ({columns}) SELECT {columns} FROM {view}"
        inner = call_datafusion(engine.context.sql, text)
    finally:
        engine.context.deregister_table(view)
    change = find_change(engine.context, inner)
    assert change is not None
    return _store(engine, inner, change, table)


def _store(engine: Engine, inner: datafusion.DataFrame, change: Change, table: str) -> LazyQuery:
    """The statement that writes the rows of a change's query into its table, named as in SQL."""
    sink = _sink(engine, change, table)
    if sink.startswith(_IN_MEMORY):
        return LazyQuery(inner, changes=replace(change, into=table))
    made = engine.tables.directories.find(table) if sink.startswith(_OF_FILES) else None
    replaces = change.operation == OVERWRITE
    why = made.refusal if made is not None else "the session does not know how the table was made"
    if replaces and made is not None and why is None and (foreign := made.foreign_directory()) is not None:
        why = f"its directory contains another directory, {foreign!r}, which would be removed"
    if made is not None and why is None:
        return engine.copy(LazyQuery(change.reads[0]), made.target.tail, "overwrite" if replaces else "append")
    if replaces or (made is not None and not made.reads_inserts):
        raise UserError(f"cannot run {change}: {why}", hint=_INSTEAD)
    return LazyQuery(inner, changes=change)


def _sink(engine: Engine, change: Change, table: str) -> str:
    """The sink with which DataFusion would write rows of that table; found by planning an insert of no rows."""
    try:
        found = engine.context.sql(f"SELECT * FROM {table}")
        why = engine.tables.only_distributed(found)
        if why is None:
            text = f"INSERT INTO {table} SELECT * FROM {table} WHERE false"
            return engine.context.sql(text).execution_plan().display()
    except Exception as error:
        why = clean_message(error)
        if "not implemented" in why:
            why = "it is a view, or a table that cannot be written"
        elif "single file" in why:
            why = "it is a table of a single file, and only directories take new rows"
    raise UserError(f"cannot run {change}: {why}", hint=_INSTEAD)


def _refuse_other_columns(table: str, wanted: list[str], given: list[str]) -> None:
    if sorted(wanted) != sorted(given):
        raise UserError(
            f"cannot write to table {table}: it has the columns {', '.join(wanted)}, and the rows {', '.join(given)}",
            hint="select the table's columns, with those names; their order does not matter",
        )
