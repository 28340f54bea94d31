"""Find the line of a CSV or JSON file that cannot be read. DataFusion counts lines from where a task's part begins.

The scan is run again over one file at a time, then over smaller and smaller parts of the file that fails, down to the
line. So DataFusion itself judges the format. This reads about twice the bytes of that file.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sparkfusion.errors import SparkfusionError, UserError, clean_message
from sparkfusion.formats import compression_of
from sparkfusion.plan.feed_scans import is_fed
from sparkfusion.plan.sources import columns_read
from sparkfusion.plan.wire import PlanNode, copy_of, decode, encode, file_scan_conf, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.wording import about_line, shorten

_MARKS = ("Csv error", "Parser error", "Json error")
_HAS_HEADER, _NEWLINES_IN_VALUES = b"\x10\x01", b"\x38\x01"
_DELIMITER = re.compile(rb"\x1a\x01(.)", re.DOTALL)
_BLOCK = 1 << 20
_HINTS = {
    "csv_scan": "mend the line, or read its column as a string (schema=…)",
    # a column of strings takes values in quotes only, so reading it as one would not help
    "json_scan": "mend the line, or leave out such lines: on_error=\"skip\"; in SQL, OPTIONS ('sparkfusion.on_error' "
    "'skip')",
}

RunPlan = Callable[[bytes], None]
"""Runs an encoded plan of one partition, and raises its error."""


def is_about_lines(error: SparkfusionError) -> bool:
    return any(mark in error.message for mark in _MARKS)


def is_located(error: SparkfusionError) -> bool:
    """Whether an error says which file it is about, as those of this module do."""
    return error.message.startswith("cannot read '")


def find_bad_line(error: SparkfusionError, plan: bytes, run: RunPlan) -> SparkfusionError | None:
    """The same error with the file and its true line; None if it is about something else, or no single file fails."""
    if not is_about_lines(error):
        return None
    for node in walk(decode(plan)):
        if kind(node) in ("csv_scan", "json_scan"):
            for scan in _scans(node, run):
                if (words := scan.failure(scan.start, scan.end)) is not None:
                    return _describe(error, scan, words)
    return None


@dataclass(frozen=True)
class _FileScan:
    """The scan of one file, or of a part of it."""

    node: PlanNode
    file: pb.PartitionedFile
    run: RunPlan

    @property
    def conf(self) -> pb.FileScanConf:
        conf = file_scan_conf(self.node)
        assert conf is not None
        return conf

    @property
    def start(self) -> int:
        return self.file.range.start if self.file.HasField("range") else 0

    @property
    def end(self) -> int:
        return self.file.range.end if self.file.HasField("range") else self.file.size

    @property
    def path(self) -> str:
        """The path as the user would write it."""
        store = self.conf.object_store_url
        return f"/{self.file.path}" if store.startswith("file:") else f"{store.rstrip('/')}/{self.file.path}"

    @property
    def is_local(self) -> bool:
        return self.conf.object_store_url.startswith("file:")

    @property
    def options(self) -> bytes:
        """The options of a CSV scan, still encoded: our wire schema does not know them."""
        options = pb.CsvScan()
        if kind(self.node) == "csv_scan":
            options.CopyFrom(self.node.csv_scan)
        options.ClearField("base_conf")
        return options.SerializeToString()

    @property
    def can_be_split(self) -> bool:
        return _NEWLINES_IN_VALUES not in self.options

    def failure(self, start: int, end: int) -> str | None:
        """What is wrong with the lines that begin in this part of the file; None if they can be read."""
        alone = copy_of(self.node)
        conf = file_scan_conf(alone)
        assert conf is not None
        del conf.file_groups[:]
        conf.ClearField("limit")
        _read_columns_alone(conf)
        file = conf.file_groups.add().files.add()
        file.CopyFrom(self.file)
        file.ClearField("range")
        if (start, end) != (0, self.file.size):
            file.range.start, file.range.end = start, end
        try:
            self.run(encode(alone))
        except Exception as error:
            words = clean_message(error)
            if any(mark in words for mark in _MARKS):
                return words
            raise
        return None


def _read_columns_alone(conf: pb.FileScanConf) -> None:
    """Remove computed expressions from a scan: an error in an expression is not the file's fault."""
    names = [column.name for column in pb.Schema.FromString(conf.schema).columns]
    read = columns_read(conf)
    conf.ClearField("projection_exprs")
    conf.projection[:] = [index for index, name in enumerate(names) if name in read]


def _scans(node: PlanNode, run: RunPlan) -> Iterator[_FileScan]:
    conf = file_scan_conf(node)
    assert conf is not None
    for group in conf.file_groups:
        for file in group.files:
            if not is_fed(file) and compression_of(file.path) is None:  # the encoded scan would not unpack it
                yield _FileScan(node, file, run)


def _describe(error: SparkfusionError, scan: _FileScan, words: str) -> SparkfusionError:
    place, text = repr(scan.path), None
    if scan.can_be_split and (found := _narrow(scan)) is not None:
        start, words = found
        if scan.is_local:
            line, text = _line_at(Path(scan.path), start)
            place += f", line {line}"
        else:
            place += f", the line at byte {start}"
    shown = f"{place}: {_plain(words, scan)}" + (f": {shorten(text)!r}" if text is not None else "")
    hint = _drift(scan) or _HINTS[kind(scan.node)]
    return UserError(f"cannot read {shown}", where=error.where, hint=hint)


def _narrow(scan: _FileScan) -> tuple[int, str] | None:
    """Where the first unreadable line begins, and what is wrong with it."""
    start, end = scan.start, scan.end
    while end - start > 1:
        middle = (start + end) // 2
        if scan.failure(start, middle) is not None:
            end = middle
        else:
            start = middle
    words = scan.failure(start, end)
    return (start, words) if words is not None else None


def _plain(words: str, scan: _FileScan) -> str:
    return about_line(words, [column.name for column in pb.Schema.FromString(scan.conf.schema).columns])


def _line_at(path: Path, start: int) -> tuple[int, str]:
    line, left = 1, start
    with path.open("rb") as file:
        while left > 0 and (block := file.read(min(_BLOCK, left))):
            line += block.count(b"\n")
            left -= len(block)
        text = file.readline(_BLOCK).rstrip(b"\r\n").decode(errors="replace")
    return line, text


def _drift(scan: _FileScan) -> str | None:
    """A hint for a CSV file whose header has other columns than the table, or another order; None otherwise."""
    delimiter = _DELIMITER.search(scan.options)
    if not scan.is_local or not scan.can_be_split or delimiter is None or _HAS_HEADER not in scan.options:
        return None
    partitions = set(scan.conf.table_partition_cols)
    columns = [each.name for each in pb.Schema.FromString(scan.conf.schema).columns if each.name not in partitions]
    _, header = _line_at(Path(scan.path), 0)
    found = next(csv.reader([header], delimiter=delimiter[1].decode()), [])
    if len(found) == len(columns) and (found == columns or set(found) != set(columns)):
        return None  # as many under other names: a schema that was given renames them
    shown = shorten(", ".join(columns)), shorten(", ".join(found))
    return f"the columns of the table are {shown[0]}; those of the file are {shown[1]}"
