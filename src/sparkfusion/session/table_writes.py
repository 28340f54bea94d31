"""Writing tables: INSERT OVERWRITE, which DataFusion 55 has for no table, and `DataFrame.write_table`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import datafusion
import pyarrow as pa

from sparkfusion.errors import UserError, clean_message
from sparkfusion.ids import new_query_id
from sparkfusion.session.changes import OVERWRITE, Change, find_change
from sparkfusion.session.directory_tables import REFERENCE
from sparkfusion.session.frame import DataFrame
from sparkfusion.session.verbs import call_datafusion
from sparkfusion.session.write_modes import WriteMode

if TYPE_CHECKING:
    from sparkfusion.session.session import Session

_IN_MEMORY = "DataSinkExec: sink=MemoryTable"
_OF_FILES = ("DataSinkExec: sink=ParquetSink", "DataSinkExec: sink=CsvSink", "DataSinkExec: sink=JsonSink",
             "DataSinkExec: sink=ArrowFileSink")  # fmt: skip
_INSTEAD = "write_parquet, write_csv and write_json write to a path, with the same modes"


def frame_of(session: Session, inner: datafusion.DataFrame) -> DataFrame:
    """A statement or a query of DataFusion's as a frame; where it overwrites a table, one that does so."""
    change = find_change(session.context, inner)
    if change is None or change.operation != OVERWRITE:
        return DataFrame(session, inner, changes=change)
    if "." in change.table and session.context.table_exist(_quoted(change.table)):
        raise UserError(f"cannot run {change}: the name contains a dot", hint="give the table another name")
    return _storing(session, inner, change, ".".join(map(_quoted, change.table.split("."))))


def write_table(session: Session, frame: DataFrame, name: str, mode: WriteMode) -> int:
    """Write the rows of a frame to a table; returns their count."""
    table = name if REFERENCE.fullmatch(name) else _quoted(name)
    if not session.context.table_exist(table):
        if mode == "append":
            raise UserError(f"there is no table {name!r} to append to", hint="mode='error' creates one in memory")
        return _create(session, frame, table)
    if mode == "ignore":
        return 0
    if mode == "error":
        raise UserError(f"table {name!r} exists", hint="mode='overwrite' replaces its rows, mode='append' adds to them")
    stored = _insert_frame(session, frame, table, "OVERWRITE" if mode == "overwrite" else "INTO")
    return int(stored.collect().column(0)[0].as_py())


def _create(session: Session, frame: DataFrame, table: str) -> int:
    rows = frame.collect()
    batches = rows.to_batches() or [pa.RecordBatch.from_pylist([], schema=rows.schema)]
    session.register_record_batches(table, [batches])
    return int(rows.num_rows)


def _insert_frame(session: Session, frame: DataFrame, table: str, word: str) -> DataFrame:
    """The frame's columns go to those of the same name."""
    _refuse_other_columns(table, session.context.table(table).schema().names, frame.schema().names)
    columns = ", ".join(map(_quoted, frame.schema().names))
    view = f"sparkfusion_rows_{new_query_id()}"
    session.context.register_view(view, frame.to_datafusion())
    try:
        text = f"INSERT {word} {table} ({columns}) SELECT {columns} FROM {view}"
        inner = call_datafusion(session.context.sql, text)
    finally:
        session.context.deregister_table(view)
    change = find_change(session.context, inner)
    assert change is not None
    return _storing(session, inner, change, table)


def _storing(session: Session, inner: datafusion.DataFrame, change: Change, table: str) -> DataFrame:
    """A frame that puts the rows of a change's query into its table.

    Args:
        table: as SQL names it.
    """
    sink = _sink(session, change, table)
    if sink.startswith(_IN_MEMORY):
        return DataFrame(session, inner, changes=replace(change, into=table))
    made = session.directory_tables.find(table) if sink.startswith(_OF_FILES) else None
    replaces = change.operation == OVERWRITE
    why = made.refusal if made is not None else "the session does not know how the table was made"
    if replaces and made is not None and why is None and (foreign := made.foreign_directory()) is not None:
        why = f"its directory contains another directory, {foreign!r}, which would be removed"
    if made is not None and why is None:
        return session.copy(
            DataFrame(session, change.reads[0]), made.target.tail, "overwrite" if replaces else "append"
        )
    if replaces:
        raise UserError(f"cannot run {change}: {why}", hint=_INSTEAD)
    return DataFrame(session, inner, changes=change)


def _sink(session: Session, change: Change, table: str) -> str:
    """What DataFusion would write rows of that table with; it is asked about none."""
    try:
        found = session.context.sql(f"SELECT * FROM {table}")
        why = session.only_distributed(DataFrame(session, found))
        if why is None:
            text = f"INSERT INTO {table} SELECT * FROM {table} WHERE false"
            return session.context.sql(text).execution_plan().display()
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


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
