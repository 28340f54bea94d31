"""Small tables in several files, so that every scan has more than one partition."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sparkfusion import Session

NAMES = ("facts", "events", "single")


def write_tables(directory: Path) -> None:
    """`facts`: 200 rows in 4 files; `events`: 60 rows in 3 files with some keys of its own; `single`: one file."""
    _write(directory / "facts", rows=200, files=4, first_key=0)
    _write(directory / "events", rows=60, files=3, first_key=5)
    _write(directory / "single", rows=50, files=1, first_key=0)


def register(session: Session, directory: Path) -> Session:
    for name in NAMES:
        session.register_parquet(name, str(directory / name))
    return session


def _write(directory: Path, *, rows: int, files: int, first_key: int) -> None:
    directory.mkdir()
    for file in range(files):
        numbers = range(rows * file // files, rows * (file + 1) // files)
        table = pa.table(
            {
                "k": [i % 17 + first_key for i in numbers],
                "v": [i * 3 for i in numbers],
                "s": [f"s{i % 5}" for i in numbers],
                "x": [None if i % 7 == 0 else float(i) for i in numbers],
            }
        )
        pq.write_table(table, directory / f"{file}.parquet")
