"""A small table in several parts that is really distributed, and the single-node answer to compare with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sparkfusion
from sparkfusion.observe.events import Event

PARTS = 4
ROWS = 1000
"""Rows of one part."""
TOTAL = PARTS * ROWS

DISTRIBUTED = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": PARTS}
"""Settings under which the smallest table is worth several tasks."""


def part(number: int, rows: int = ROWS) -> pa.Table:
    """Rows `number * rows` and following: `part`, a key `k` of seven values, and the row's number `v`."""
    values = range(number * rows, (number + 1) * rows)
    return pa.table(
        {
            "part": pa.array([number] * rows, pa.int64()),
            "k": pa.array([value % 7 for value in values], pa.int64()),
            "v": pa.array(values, pa.int64()),
        }
    )


def write_parts(directory: Path, parts: int = PARTS, rows: int = ROWS) -> Path:
    """One Parquet file for each part; DataFusion makes about one task of each."""
    home = directory / "parts"
    home.mkdir()
    for number in range(parts):
        pq.write_table(part(number, rows), home / f"{number}.parquet", row_group_size=max(1, rows // 4))
    return home


def write_files(directory: Path, name: str, rows: pa.Table, files: int) -> Path:
    """A table in several files, in a directory of its own."""
    home = directory / name
    home.mkdir()
    each = -(-rows.num_rows // files)
    for number in range(files):
        pq.write_table(rows.slice(number * each, each), home / f"{number}.parquet")
    return home


def write_keyed(directory: Path, name: str, keys: list[int | None], files: int) -> Path:
    """A table in several files: a key `k`, which may be NULL, another key `j`, a number and a name."""
    count = len(keys)
    columns = {
        "k": pa.array(keys, pa.int64()),
        "j": pa.array([row % 11 for row in range(count)], pa.int64()),
        "v": pa.array(range(count), pa.int64()),
        "name": pa.array([f"name {row % 3}" for row in range(count)], pa.string()),
    }
    return write_files(directory, name, pa.table(columns), files)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in an order of their own: for comparing what has no order."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(zip(*columns, strict=True), key=repr)


def single_node(frame: sparkfusion.DataFrame) -> pa.Table:
    return frame.to_datafusion().to_arrow_table()


def assert_distributed_like_single_node(frame: sparkfusion.DataFrame) -> pa.Table:
    """The frame is distributed and answers like single-node DataFusion, in rows and schema."""
    distribution = frame.distribution()
    assert distribution.distributed, distribution.reason
    found = frame.collect()
    assert rows_of(found) == rows_of(single_node(frame))
    assert found.schema == frame.schema()
    return found


def record(session: sparkfusion.Session) -> list[Event]:
    """All events of the session from now on."""
    events: list[Event] = []
    session.subscribe(events.append)
    return events


def names_of(events: Iterable[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def assert_usable(session: sparkfusion.Session) -> None:
    """The session still answers a distributed query."""
    session.register_record_batches("still_usable", [[pa.record_batch({"x": [i, i + 1]})] for i in range(3)])
    frame = session.sql("select x % 2 as odd, count(*) as n from still_usable group by x % 2 order by odd")
    assert frame.to_pylist() == [{"odd": 0, "n": 3}, {"odd": 1, "n": 3}]
    session.deregister_table("still_usable")
