"""Run one statement and write what it returns, with its progress meanwhile."""

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
        rows: how many it gave; None for a statement that has none to give, such as SET.
        seconds: from its text to its last row or its last file.
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
        frame = session.lazy_sql(sql)  # what writes is run by the stream: the progress shows its stages
        with frame.stream() as stream:
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
    """A table is printed when all rows are there; its progress is shown until then."""
    yield from batches
    line.stop()


def _stop_before_rows(line: ProgressLines, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows and progress share the terminal, so progress is erased before the first rows and the header."""
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
