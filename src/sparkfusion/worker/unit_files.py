"""Work units of a task: where they come from, and the files that a scan reads for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from datafusion import SessionContext, lit

from sparkfusion.errors import UserError, classify
from sparkfusion.feed.feed import UnitSource
from sparkfusion.feed.provider import Reader
from sparkfusion.feed.units import FileUnit, WorkUnit, check_path, check_span
from sparkfusion.file_systems import file_size
from sparkfusion.ids import FeedId
from sparkfusion.plan.feed_scans import UnitFile
from sparkfusion.plan.sources import object_path
from sparkfusion.plan.wire import decode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.urls import LOCAL_STORE, is_url, plain_path, split_object
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.file_errors import name_table

T = TypeVar("T")


@dataclass(frozen=True)
class FeedInput:
    """What a task knows about its feed. The provider itself stays in the coordinator.

    Attributes:
        files: whether units are files; otherwise a reader turns them into rows.
        schema: the table's schema in Arrow's encoding. `columns`: those that the query reads.
    """

    feed: FeedId
    table: str
    files: bool
    schema: bytes
    columns: tuple[str, ...]
    partition_columns: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def arrow_schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self.schema))


@dataclass(frozen=True)
class FeedEnd:
    """A task's end of its feed: live objects that are not sent with the order, and the offset to begin at."""

    units: UnitSource
    reader: Reader | None = None
    first: int = 0


Chunk = tuple[str, list[UnitFile]]
"""Files to scan at once, all in the object store of that URL."""


def iterate_until_cancelled(items: Iterable[T], cancel: CancelToken) -> Iterator[T]:
    """The items, until the task is cancelled. Checked before each item, because the work on one may take long."""
    for item in items:
        if cancel.cancelled:
            raise asyncio.CancelledError
        yield item


def file_chunks(units: Iterable[WorkUnit], feed: FeedInput) -> Iterator[Chunk]:
    """The files of units as they are, one chunk for each object store."""
    stores: dict[str, list[UnitFile]] = {}
    for unit in units:
        if not isinstance(unit, FileUnit):
            raise UserError(f"the feed of table {feed.table!r} returned a unit that is not a file")
        store, file = _locate(unit, feed)
        stores.setdefault(store, []).append(file)
    yield from stores.items()


def _locate(unit: FileUnit, feed: FeedInput) -> tuple[str, UnitFile]:
    values = partition_values(unit, feed)
    if is_url(unit.path):
        store, path = split_object(unit.path)
    else:
        store, path = LOCAL_STORE, object_path(str(Path(plain_path(unit.path)).resolve()))
    size = unit.size if unit.size is not None else _find_size(unit.path, feed)
    try:
        check_path(path)  # links are followed by now, and percent signs are characters
        check_span(unit.path, unit.range, size)
    except UserError as error:
        raise name_table(error, feed.table) from None
    return store, UnitFile(path, size, unit.range, values)


def _find_size(path: str, feed: FeedInput) -> int:
    try:
        return file_size(path)
    except Exception as error:
        raise name_table(classify(error), feed.table) from error


def partition_values(unit: FileUnit, feed: FeedInput) -> tuple[bytes, ...]:
    """The encoded values of a unit's partition columns, as a scan needs them."""
    if not feed.partition_columns:
        return ()
    schema = feed.arrow_schema()
    missing = [name for name in feed.partition_columns if name not in unit.partition_values]
    if missing:
        raise UserError(f"unit {unit.path!r} of table {feed.table!r} has no value of {', '.join(missing)}")
    return tuple(
        _encode_literal(unit.partition_values[name], schema.field(name).type) for name in feed.partition_columns
    )


@lru_cache(maxsize=1024)
def _encode_literal(value: str | bytes | None, type: pa.DataType) -> bytes:
    """A value as plans hold it. DataFusion encodes it."""
    try:
        typed = pa.scalar(value, pa.binary() if isinstance(value, bytes) else pa.string()).cast(type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UserError(f"the partition value {value!r} is not a valid {type}: {error}") from error
    context = SessionContext()
    frame = context.from_pydict({"x": [1]}).select(lit(typed).alias("value"))
    root = decode(frame.execution_plan().to_bytes(context))
    for node in walk(root):
        if kind(node) == "projection":
            (expr,) = pb.Projection.FromString(node.projection.SerializeToString()).expr
            return bytes(expr.literal)
    raise UserError(f"a value of type {type} cannot be a partition value")
