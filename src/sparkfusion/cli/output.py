"""Results as text: a table for people, CSV and JSON as streams. Only the table collects rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TextIO, get_args

import pyarrow as pa
from pyarrow import types
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sparkfusion.cli.columns import csv_field, csv_lines, json_objects
from sparkfusion.cli.grid import draw
from sparkfusion.cli.values import Plain, plain, text
from sparkfusion.errors import UserError

OutputFormat = Literal["table", "csv", "json", "jsonl"]
OUTPUT_FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)

_READABLE = 30  # a longer value is folded rather than its column left out


def write(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: TextIO, form: OutputFormat, *, max_rows: int = 100
) -> int:
    """Write a whole result and give the number of its rows. `max_rows` limits the table only."""
    names = unique_names(schema.names)
    match form:
        case "table":
            return _write_table(schema, names, batches, out, max_rows)
        case "csv":
            return _write_csv(names, batches, out)
        case "json":
            return _write_json(names, batches, out)
        case "jsonl":
            return _write_lines(names, batches, out)


@contextmanager
def destination(path: str | None) -> Iterator[TextIO]:
    """Where output goes. A file appears whole under its name when everything went well, or not at all."""
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    target = Path(path)
    if target.exists() and not target.is_file():  # a pipe or a device has no place for a second file beside it
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


def _open_file(file: Path, path: str) -> TextIO:
    """The file, open for writing; an error names the path that the user gave."""
    if not file.parent.is_dir():
        raise UserError(f"cannot write {path!r}: the directory {str(file.parent)!r} does not exist")
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
    """Column names that may be keys: SQL allows the same name twice.

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
    for batch in batches:
        out.writelines(csv_lines(batch) if names else ["\n"] * batch.num_rows)
        count += batch.num_rows
    return count


def _write_lines(names: list[str], batches: Iterable[pa.RecordBatch], out: TextIO) -> int:
    count = 0
    for batch in batches:
        out.writelines(lines + "\n" for lines in _objects(names, batch, "\n"))
        count += batch.num_rows
    return count


def _write_json(names: list[str], batches: Iterable[pa.RecordBatch], out: TextIO) -> int:
    """One array, an object a line."""
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


def _write_table(
    schema: pa.Schema, names: list[str], batches: Iterable[pa.RecordBatch], out: TextIO, max_rows: int
) -> int:
    """Holds `max_rows` rows; the rest is only counted."""
    shown: list[tuple[Plain, ...]] = []
    count = 0
    for batch in batches:
        shown += _rows(batch.slice(0, max(0, max_rows - len(shown))))
        count += batch.num_rows
    if not names:
        return count
    if not out.isatty():
        out.writelines(draw(names, [_is_number(kind) for kind in schema.types], shown))
        out.write(f"{_footer(count, len(shown))}\n")
        return count
    console = PipeConsole(file=out, highlight=False)
    fitting = columns_that_fit(names, shown, console.width)
    table = Table(box=box.ROUNDED)
    for name, kind in list(zip(names, schema.types, strict=True))[:fitting]:
        table.add_column(Text(name), justify="right" if _is_number(kind) else "left", overflow="fold")
    for row in shown:
        table.add_row(*map(_cell, row[:fitting]))
    console.print(table)
    if fitting < len(names):
        left_out = ", ".join(names[fitting:])
        console.print(Text(f"left out, for the terminal's width: {left_out} (--format csv shows every column)"))
    console.print(_footer(count, len(shown)))
    return count


def _cell(value: Plain) -> Text:
    return Text("NULL", style="dim italic") if value is None else Text(text(value))


def _footer(count: int, shown: int) -> str:
    rows = count_of(count, "row")
    return rows if shown == count else f"{rows}, {count - shown:,} not shown (--max-rows)"


def _is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
