"""`sparkfusion sql`: run statements and print what they return."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, TextIO

import click
import pyarrow as pa

from sparkfusion.cli.options import dialect_option, open_session, read_statements, session_options, source_options
from sparkfusion.cli.output import OUTPUT_FORMATS, OutputFormat, count_of, destination, write
from sparkfusion.cli.progress_line import ProgressLine, progress_line
from sparkfusion.cli.script import locate_error
from sparkfusion.cli.tables import Table

if TYPE_CHECKING:
    from sparkfusion import Session


@click.command()
@source_options
@session_options
@dialect_option
@click.option(
    "--format", "form", type=click.Choice(OUTPUT_FORMATS), default="table", show_default=True, help="Output format."
)
@click.option(
    "-o", "--output", metavar="FILE", help="Write to this file. It is created only if all statements succeed."
)
@click.option(
    "--max-rows",
    type=click.IntRange(min=0),
    default=100,
    show_default=True,
    help="How many rows the table format shows; the others are only counted. Other formats write all rows.",
)
@click.option("--partitions", type=click.IntRange(min=1), help="The partition count that DataFusion plans with.")
@click.option("--timing", is_flag=True, help="Print to stderr how long each statement took.")
def sql(
    text: str | None,
    file: str | None,
    target: str,
    tables: tuple[Table, ...],
    settings: tuple[tuple[str, str], ...],
    dialect: str | None,
    form: OutputFormat,
    output: str | None,
    max_rows: int,
    partitions: int | None,
    timing: bool,
) -> None:
    """Run SQL statements and print what they return.

    \b
    Examples:
      sparkfusion sql -c "select * from t limit 3" -t t=data/t.parquet
      sparkfusion sql -f report.sql -t sales=csv:sales.txt --format csv -o report.csv
      sparkfusion sql -c "select count(*) from t" -t t=data/ -s sparkfusion.slots=4 --timing
      sparkfusion sql -c "select count(*) from t" -t t=/data/t/ --connect flight://10.0.0.5:7070,10.0.0.6:7070
      sparkfusion sql -c 'select id div 2, `id` from t order by 1' -t t=data/ --dialect spark
      cat q.sql | sparkfusion sql -f - -t t=data/ --format jsonl | jq .
    """
    statements = read_statements(text, file)
    with (
        destination(output) as out,
        open_session(target, tables, settings, partitions, dialect) as session,
        progress_line(session) as line,
    ):
        for statement in statements:
            with locate_error(statement, statements):
                rows = _run(session, statement.sql, line, out, form, max_rows)
            out.flush()
            if timing:
                click.echo(_timing(line, rows), err=True)


def _run(
    session: Session, query: str, line: ProgressLine, out: TextIO, form: OutputFormat, max_rows: int
) -> int | None:
    """How many rows there were; None for a statement that has none to give, such as SET."""
    line.start()
    try:
        frame = session.lazy_sql(query)  # what writes is run by the stream: its stages are those of the progress line
        with frame.stream() as stream:
            batches: Iterator[pa.RecordBatch] = stream
            if form == "table":
                batches = _then_stop(line, batches)
            elif out.isatty():
                batches = _stop_before_rows(line, batches)
            rows = write(stream.schema, batches, out, form, max_rows=max_rows)
            return rows if stream.schema.names else None
    finally:
        line.stop()


def _then_stop(line: ProgressLine, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A table is printed when all rows are there; the progress line stays until then."""
    yield from batches
    line.stop()


def _stop_before_rows(line: ProgressLine, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows and the progress line share the terminal, so the line is erased before the first rows and the header."""
    first = list(islice(batches, 1))
    line.stop()
    return chain(first, batches)


def _timing(line: ProgressLine, rows: int | None) -> str:
    state = line.progress.state
    parts = [f"{line.progress.elapsed:.3f} s"]
    if rows is None:
        return parts[0]
    parts.append(count_of(rows, "row"))
    if state.stages_total:
        parts.append(f"{count_of(state.stages_total, 'stage')}, {count_of(state.tasks_total, 'task')}")
    else:
        parts.append(f"single node: {state.reason}" if state.reason else "single node")
    return "; ".join(parts)
