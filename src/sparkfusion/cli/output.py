"""Write results in every format. Tables for people hold their rows in memory; CSV, JSON and Arrow files are
streamed."""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TextIO, TypeVar, get_args

import pyarrow as pa
from pyarrow import types
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sparkfusion.cli.binary_output import write_binary
from sparkfusion.cli.columns import ROWS_AT_ONCE, csv_field, csv_lines, json_objects
from sparkfusion.cli.grid import draw, draw_markdown, draw_vertical
from sparkfusion.cli.values import Plain, plain, text
from sparkfusion.config import available_cores
from sparkfusion.errors import UserError
from sparkfusion.formats import format_of

OutputFormat = Literal["table", "vertical", "markdown", "csv", "json", "jsonl", "ndjson", "parquet", "arrow"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)
T = TypeVar("T")
HELD_FORMATS = ("table", "vertical", "markdown")
"""The formats for people: they are written when all rows are there, at most `max_rows` of them."""
BINARY_FORMATS = ("parquet", "arrow")
_OTHER_FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".md": "markdown"}
"""The endings that mean something else for output than for tables."""
_TEXT = ("", ".txt", ".log", ".out")
_READABLE = 30  # a longer value is folded, and its column is not left out


def format_for(path: str | None) -> OutputFormat:
    """The format that the name of an output file implies; a table if there is none.

    >>> format_for("report.parquet"), format_for("report.txt"), format_for(None)
    ('parquet', 'table', 'table')
    """
    return "table" if path is None else _implied_format(path) or "table"


def describe_format(path: str) -> str | None:
    """What to report about a file whose name implies no format; None if it implies one, or plain text.

    >>> describe_format("report.xyz"), describe_format("report.txt")
    ("the name of 'report.xyz' implies no format, so it will be a table for people", None)
    """
    is_plain = Path(path).suffix.lower() in _TEXT or (Path(path).exists() and not Path(path).is_file())
    if is_plain or _implied_format(path) is not None:
        return None
    return f"the name of {path!r} implies no format, so it will be a table for people"


def _implied_format(path: str) -> OutputFormat | None:
    ending = Path(path).suffix.lower()
    found = _OTHER_FORMATS.get(ending) or format_of(ending)
    return next((form for form in OUTPUT_FORMATS if form == found), None)


def write(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    out: TextIO,
    form: OutputFormat,
    *,
    max_rows: int = 100,
    more: str = "--max-rows",
) -> int:
    """Write a whole result and return the number of its rows.

    Args:
        max_rows: how many rows are written in formats for people; the others are only counted.
        more: the option that shows more rows, for the line that says how many are not shown.
    """
    names = unique_names(schema.names)
    if form in HELD_FORMATS:
        shown, count = _hold(batches, max_rows)
        if names:
            _write_held(schema, names, shown, out, form)
            out.write(f"{_footer(count, len(shown), more)}\n" if form != "markdown" or len(shown) < count else "")
        return count
    match form:
        case "csv":
            return _write_csv(names, batches, out)
        case "json":
            return _write_json(names, batches, out)
        case "parquet" | "arrow":
            return write_binary(schema, names, batches, out, form)
        case _:
            return _write_lines(names, batches, out)


@contextmanager
def destination(path: str | None) -> Iterator[TextIO]:
    """The stream that output goes to. A file appears under its name only when it is complete."""
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    target = Path(path)
    if target.exists() and not target.is_file():  # beside a pipe or a device, no second file can be made
        with _open_file(target, path) as out:
            yield out
        return
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    out = _open_file(partial, path)
    try:
        with out:
            yield out
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def check_directory(path: str) -> None:
    """Refuse a file to write whose directory does not exist."""
    if not (parent := Path(path).parent).is_dir():
        raise UserError(f"cannot write {path!r}: the directory {str(parent)!r} does not exist")


def _open_file(file: Path, path: str) -> TextIO:
    """The file, open for writing; an error names the path that the user gave."""
    check_directory(path)
    try:
        return file.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise UserError(f"cannot write {path!r}: {error.strerror}") from error


def count_of(number: int, noun: str) -> str:
    """
    >>> count_of(1, "row"), count_of(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def unique_names(names: Sequence[str]) -> list[str]:
    """Column names made unique, for JSON keys: SQL allows the same name twice.

    >>> unique_names(["id", "id", "id_1"])
    ['id', 'id_2', 'id_1']
    """
    taken: set[str] = set()
    found: list[str] = []
    for name in names:
        choice, number = name, 0
        while choice in taken or (number and choice in names):
            number += 1
            choice = f"{name}_{number}"
        taken.add(choice)
        found.append(choice)
    return found


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Plain, ...]]:
    if batch.num_columns == 0:
        return iter([()] * batch.num_rows)
    return zip(*(plain(column) for column in batch.columns), strict=True)


def _write_csv(names: list[str], batches: Iterable[pa.RecordBatch], out: TextIO) -> int:
    """RFC 4180, with \\n line ends. NULL is an empty field, the empty string a quoted one."""
    count = 0
    if names:
        out.write(",".join(map(csv_field, names)) + "\n")
    if not names or not _is_output_file(out):  # the reader of a pipe may wait for each row
        for batch in batches:
            out.writelines((str(lines, "utf-8") for lines in csv_lines(batch)) if names else ["\n"] * batch.num_rows)
            count += batch.num_rows
        return count
    out.flush()  # the rest bypasses the text layer, which would decode and encode it again
    for rows, lines in _convert_ahead(_join_small(batches), lambda batch: (batch.num_rows, list(csv_lines(batch)))):
        out.buffer.writelines(lines)
        count += rows
    return count


def _is_output_file(out: TextIO) -> bool:
    """Whether output goes to a file, so that nobody waits for the next row. Standard output may be a file too."""
    try:
        return stat.S_ISREG(os.fstat(out.fileno()).st_mode)
    except OSError:
        return False


def _join_small(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about `ROWS_AT_ONCE`: converting eight batches of 8,192 rows at once takes 60 to 80 %
    of the time."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= ROWS_AT_ONCE:
            yield from _concat(held)
            held = []
    yield from _concat(held)


def _concat(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """One batch, or the batches as they are if their dictionaries together have more values than the index type
    allows."""
    try:
        return [pa.concat_batches(batches)] if batches else []
    except pa.ArrowInvalid:
        return batches


def _convert_ahead(batches: Iterable[pa.RecordBatch], convert: Callable[[pa.RecordBatch], T]) -> Iterator[T]:
    """Each batch converted, in order. It runs on all cores, because Arrow releases the GIL, and holds only a few
    batches."""
    cores = available_cores()
    pending: deque[Future[T]] = deque()
    with ThreadPoolExecutor(cores, "sparkfusion-output") as pool:
        for batch in batches:
            pending.append(pool.submit(convert, batch))
            if len(pending) > 2 * cores:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def _write_lines(names: list[str], batches: Iterable[pa.RecordBatch], out: TextIO) -> int:
    count = 0
    for batch in batches:
        out.writelines(lines + "\n" for lines in _objects(names, batch, "\n"))
        count += batch.num_rows
    return count


def _write_json(names: list[str], batches: Iterable[pa.RecordBatch], out: TextIO) -> int:
    """Write one JSON array, with an object in each line."""
    count, separator = 0, ""
    out.write("[")
    for batch in batches:
        for objects in _objects(names, batch, ",\n"):
            out.write(f"{separator}\n{objects}")
            separator = ","
        count += batch.num_rows
    out.write("\n]\n" if count else "]\n")
    return count


def _objects(names: list[str], batch: pa.RecordBatch, between: str) -> Iterator[str]:
    if names:
        return json_objects(names, batch, between)
    return iter([between.join(["{}"] * batch.num_rows)] if batch.num_rows else [])


class PipeConsole(Console):
    """A closed pipe is not an error here; rich would exit with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def columns_that_fit(names: Sequence[str], rows: Sequence[tuple[Plain, ...]], width: int) -> int:
    """How many columns, from the left, can be read on a terminal of that width; at least one.

    >>> columns_that_fit(["a", "b", "c"], [("x" * 30, "y" * 30, "z" * 30)], 80)
    2
    """
    left = width - 1
    for index, name in enumerate(names):
        widest = max([len(name), *(len(text(row[index])) for row in rows if row[index] is not None)])
        left -= min(widest, _READABLE) + 3
        if left < 0:
            return max(1, index)
    return len(names)


def _hold(batches: Iterable[pa.RecordBatch], max_rows: int) -> tuple[list[tuple[Plain, ...]], int]:
    """The first rows, and the number of all rows."""
    shown: list[tuple[Plain, ...]] = []
    count = 0
    for batch in batches:
        shown += _rows(batch.slice(0, max(0, max_rows - len(shown))))
        count += batch.num_rows
    return shown, count


def _write_held(
    schema: pa.Schema, names: list[str], shown: list[tuple[Plain, ...]], out: TextIO, form: OutputFormat
) -> None:
    right = [_is_number(kind) for kind in schema.types]
    if form == "vertical":
        out.writelines(draw_vertical(names, shown))
    elif form == "markdown":
        out.writelines(draw_markdown(names, right, shown))
    elif out.isatty():
        _write_on_terminal(names, right, shown, out)
    else:
        out.writelines(draw(names, right, shown))


def _write_on_terminal(names: list[str], right: Sequence[bool], shown: list[tuple[Plain, ...]], out: TextIO) -> None:
    console = PipeConsole(file=out, highlight=False)
    fitting = columns_that_fit(names, shown, console.width)
    table = Table(box=box.ROUNDED)
    for name, at_right in list(zip(names, right, strict=True))[:fitting]:
        table.add_column(Text(name), justify="right" if at_right else "left", overflow="fold")
    for row in shown:
        table.add_row(*map(_cell, row[:fitting]))
    console.print(table)
    if fitting < len(names):
        left_out = ", ".join(names[fitting:])
        console.print(Text(f"left out, for the terminal's width: {left_out} (the format vertical shows every column)"))


def _cell(value: Plain) -> Text:
    return Text("NULL", style="dim italic") if value is None else Text(text(value))


def _footer(count: int, shown: int, more: str) -> str:
    rows = count_of(count, "row")
    return rows if shown == count else f"{rows}, {count - shown:,} not shown ({more})"


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
