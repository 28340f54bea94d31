"""Spark DataFrames in plans: scans of placeholder files, which are replaced by real files in the tasks.

DataFusion plans such a table as a listing of Arrow files, one for each part; the runner decides what a part is. In an
encoded plan their paths are placeholders, like those of exchange sources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sparkfusion.errors import UserError
from sparkfusion.ids import SourceFile, TableId
from sparkfusion.plan.sources import object_path
from sparkfusion.plan.wire import PlanNode, decode, encode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb

_PREFIX = "sparkfusion-table/"
_REGISTER_AGAIN = "register the table again"


@dataclass(frozen=True)
class TablePart:
    """The part of a table that a placeholder stands for."""

    table: TableId
    part: int
    name: str


@dataclass(frozen=True)
class TableHint:
    """A table's name, approximate size and number of parts, for planning."""

    name: str
    bytes: int
    parts: int


def mark_tables(root: PlanNode, home: str, hints: Mapping[TableId, TableHint]) -> bool:
    """Turn scans of files below `home`, named `<table>/<part>`, into placeholders, in place. Returns whether there were
    any."""
    prefix = object_path(home).rstrip("/") + "/"
    found = False
    for node in walk(root):
        for file in _files(node):
            if file.path.startswith(prefix):
                table, part = file.path.removeprefix(prefix).split("/")
                hint, number = hints[int(table)], part.split(".")[0]
                if not number.isdigit():
                    raise UserError(
                        f"table {hint.name} is a Spark DataFrame and accepts no INSERT", hint=_REGISTER_AGAIN
                    )
                number = str(int(number))
                file.path = f"{_PREFIX}{table}/{number}/{hint.name.replace('/', '_')} part {number}"
                file.size = max(1, hint.bytes // hint.parts)
                file.ClearField("range")
                found = True
    return found


def parts_of(node: PlanNode) -> list[TablePart]:
    """The parts that a node scans; empty if it does not scan such a table."""
    return [_parse(file.path) for file in _files(node) if file.path.startswith(_PREFIX)]


def bind_tables(plan: bytes, file_of: Callable[[TableId, int], SourceFile | None]) -> bytes:
    """Replace the placeholders of every part by its file, or by nothing."""
    root = decode(plan)
    for node in walk(root):
        if kind(node) != "arrow_scan":
            continue
        for group in node.arrow_scan.base_conf.file_groups:
            kept = [_bind(file, file_of) for file in group.files]
            del group.files[:]
            group.files.extend(file for file in kept if file is not None)
    return encode(root)


def _bind(file: pb.PartitionedFile, file_of: Callable[[TableId, int], SourceFile | None]) -> pb.PartitionedFile | None:
    if not file.path.startswith(_PREFIX):
        return pb.PartitionedFile.FromString(file.SerializeToString())
    part = _parse(file.path)
    found = file_of(part.table, part.part)
    return None if found is None else pb.PartitionedFile(path=object_path(found.path), size=found.size)


def _files(node: PlanNode) -> list[pb.PartitionedFile]:
    if kind(node) != "arrow_scan":
        return []
    return [file for group in node.arrow_scan.base_conf.file_groups for file in group.files]


def _parse(path: str) -> TablePart:
    table, part, shown = path.removeprefix(_PREFIX).split("/")
    return TablePart(int(table), int(part), shown.rpartition(" part ")[0])
