"""Run one statement, show its progress, and write its rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, TextIO

import pyarrow as pa

from sparkfusion.cli.output import HELD_FORMATS, OutputFormat, count_of, write
from sparkfusion.cli.progress_lines import ProgressLines
from sparkfusion.cli.table_sources import register_paths

if TYPE_CHECKING:
    from sparkfusion import Session


@dataclass(frozen=True)
class Ran:
    """A statement that has ended.

    Attributes:
        rows: how many rows it returned; None for a statement without rows, such as SET.
        seconds: from its start to its last row or its last file.
    """

    rows: int | None
    seconds: float


def run_statement(
    session: Session,
    sql: str,
    line: ProgressLines,
    out: TextIO,
    form: OutputFormat,
    *,
    max_rows: int,
    more: str = "--max-rows",
) -> Ran:
    started = time.perf_counter()
    line.start()
    try:
        register_paths(session, sql)
        query = session.lazy_sql(sql)  # the stream runs statements that write, so progress shows them
        with query.stream() as stream:
            batches: Iterator[pa.RecordBatch] = stream
            if form in HELD_FORMATS:
                batches = _then_stop(line, batches)
            elif out.isatty():
                batches = _stop_before_rows(line, batches)
            rows = write(stream.schema, batches, out, form, max_rows=max_rows, more=more)
        return Ran(rows if stream.schema.names else None, time.perf_counter() - started)
    finally:
        line.stop()


def _then_stop(line: ProgressLines, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass on the batches and stop the progress after the last one: a table is printed when all rows are there."""
    yield from batches
    line.stop()


def _stop_before_rows(line: ProgressLines, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass on the batches and erase the progress before the first rows and the header, which share the terminal with
    it."""
    first = list(islice(batches, 1))
    line.stop()
    return chain(first, batches)


def describe_timing(line: ProgressLines, ran: Ran) -> str:
    """How long the last statement took, and how it ran. Its queries may have ended before it: a COPY still writes."""
    state = line.progress.state
    parts = [f"{ran.seconds:.3f} s"]
    if ran.rows is None:
        return parts[0]
    parts.append(count_of(ran.rows, "row"))
    if state.stages_total:
        parts.append(f"{count_of(state.stages_total, 'stage')}, {count_of(state.tasks_total, 'task')}")
    else:
        parts.append(f"single node: {state.reason}" if state.reason else "single node")
    return "; ".join(parts)
