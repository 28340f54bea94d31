"""Find the lines of CSV and JSON that DataFusion cannot read. DataFusion itself decides, so both always agree.

Many lines are read at once. If that fails, smaller parts are tried, down to the lines that fail alone.
"""

from __future__ import annotations

import copy
import itertools
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from datafusion.options import CsvReadOptions

from sparkfusion.errors import clean_message
from sparkfusion.wording import about_line

_LINE_NUMBER = re.compile(r"\b(?:at|for|on) line (\d{1,9})\b")
_NOT_ONE_ROW = {"csv": "a quote is opened and not closed", "json": "the line is not one object"}


@dataclass(frozen=True)
class LineFormat:
    """The format of lines. `csv` has the options of CSV; it is None for JSON."""

    csv: CsvReadOptions | None = None

    @property
    def name(self) -> str:
        return "json" if self.csv is None else "csv"

    @property
    def has_header(self) -> bool:
        return self.csv is not None and self.csv.has_header

    def are_rows(self, lines: Sequence[bytes]) -> bool:
        """Whether DataFusion reads every line as a row; it skips empty lines and comments."""
        if self.csv is None:
            return all(map(bytes.strip, lines))
        return all(lines) and not (self.csv.comment and any(map(self._is_comment, lines)))

    def _is_comment(self, line: bytes) -> bool:
        return self.csv is not None and bool(self.csv.comment) and line.startswith(str(self.csv.comment).encode())

    def read(self, context: SessionContext, path: str, schema: pa.Schema | None, *, header: bool) -> Any:
        """A DataFrame of a file. Without a schema DataFusion infers one."""
        if self.csv is None:
            return context.read_json(path, schema=schema, file_extension="")
        options = copy.copy(self.csv)
        options.schema, options.has_header = schema, header
        options.file_extension, options.table_partition_cols, options.file_sort_order = "", [], []
        return context.read_csv(path, options=options)


@dataclass(frozen=True)
class Passed:
    """Lines that can be read, as rows."""

    rows: pa.Table


@dataclass(frozen=True)
class Stopped:
    """A line that cannot be read: its position among the lines, and why."""

    at: int
    why: str


class Sieve:
    """Reads lines. Made by `open_sieve`."""

    def __init__(self, format: LineFormat, directory: Path) -> None:
        self._format = format
        self._directory = directory
        self._numbers = itertools.count()
        self._context = SessionContext(SessionConfig().with_target_partitions(1))

    def sift(self, lines: Sequence[bytes], schema: pa.Schema, first: int = 0) -> Iterator[Passed | Stopped]:
        """The lines in their order: `Passed` with the rows of those that can be read, and `Stopped` for each that
        cannot. None of the lines may be empty.

        The first line is read again after the last one, to find a quote that the last line leaves open: the added line
        then becomes part of its value, and there are fewer rows than lines.
        """
        if not lines:
            return
        found = self._rows([*lines, lines[0]], schema)
        if isinstance(found, pa.Table):
            yield Passed(found.slice(0, len(lines)))
        elif len(lines) == 1:
            alone = self._rows(lines, schema)
            why = alone if isinstance(alone, str) else _NOT_ONE_ROW[self._format.name]
            yield Stopped(first, about_line(why, schema.names))
        else:
            for start, end in itertools.pairwise(_cuts(found, len(lines))):
                yield from self.sift(lines[start:end], schema, first + start)

    def _rows(self, lines: Sequence[bytes], schema: pa.Schema) -> pa.Table | str:
        """A row for each line, or why they cannot be read."""
        with self._file(lines) as path:
            try:
                batches = self._format.read(self._context, path, schema, header=False).collect()
            except Exception as error:
                return clean_message(error)
        rows = pa.Table.from_batches(batches, schema=batches[0].schema if batches else schema)
        return rows if rows.num_rows == len(lines) else _NOT_ONE_ROW[self._format.name]

    def guess(self, lines: Sequence[bytes]) -> pa.Schema:
        """The schema that DataFusion infers from the lines that it can read. In CSV the first line decides how many
        fields there are."""
        lead = list(lines[:1]) if self._format.csv is not None else []
        return self._guess_schema([*lead, *self._agreeing_lines(lead, lines[len(lead) :])])

    def _agreeing_lines(self, lead: list[bytes], lines: Sequence[bytes]) -> list[bytes]:
        if not lines:
            return []
        try:
            self._guess_schema([*lead, *lines])
        except Exception:
            if len(lines) == 1:
                return []
            half = len(lines) // 2
            return self._agreeing_lines(lead, lines[:half]) + self._agreeing_lines(lead, lines[half:])
        return list(lines)

    def _guess_schema(self, lines: Sequence[bytes]) -> pa.Schema:
        with self._file(lines) as path:
            return self._format.read(self._context, path, None, header=self._format.has_header).schema()

    @contextmanager
    def _file(self, lines: Sequence[bytes]) -> Iterator[str]:
        """A file of the lines, with a new name each time: DataFusion caches files by name."""
        path = self._directory / str(next(self._numbers))
        path.write_bytes(b"\n".join(lines) + b"\n")
        try:
            yield str(path)
        finally:
            path.unlink()


def _cuts(words: str, lines: int) -> list[int]:
    """Where to split lines that cannot be read together: in the middle, and around the line that DataFusion's message
    names.

    DataFusion counts lines from 0 in some messages and from 1 in others.

    >>> _cuts("Error while parsing value 'x' for column 0 at line 7", 100)
    [0, 6, 7, 8, 50, 100]
    """
    named = _LINE_NUMBER.search(words)
    near = {int(named[1]) + step for step in (-1, 0, 1)} if named is not None else set()
    return sorted({0, lines // 2, lines, *(cut for cut in near if 0 < cut < lines)})


@contextmanager
def open_sieve(format: LineFormat) -> Iterator[Sieve]:
    with tempfile.TemporaryDirectory(prefix="sparkfusion-lines-") as directory:
        yield Sieve(format, Path(directory))
