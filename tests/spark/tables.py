"""Small tables in several files, so that every scan has more than one partition."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sparkfusion import Session

DISTRIBUTED: dict[str, object] = {
    "sparkfusion.bytes_per_partition": 1,
    "datafusion.execution.target_partitions": 3,
}
PARTITIONED_JOINS: dict[str, object] = {
    **DISTRIBUTED,
    "sparkfusion.broadcast_bytes": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}


def write_tables(directory: Path) -> Path:
    """`facts`: 200 rows, `events`: 60 rows with some keys of its own. `d` is a dictionary, another one in each file."""
    _write(directory / "facts", rows=200, first_key=0)
    _write(directory / "events", rows=60, first_key=5)
    return directory


def register(session: Session, directory: Path) -> Session:
    for name in ("facts", "events"):
        session.register_parquet(name, str(directory / name))
    return session


def _write(directory: Path, *, rows: int, first_key: int, files: int = 3) -> None:
    directory.mkdir()
    for file in range(files):
        numbers = range(rows * file // files, rows * (file + 1) // files)
        table = pa.table(
            {
                "k": [number % 17 + first_key for number in numbers],
                "v": [number * 3 for number in numbers],
                "x": [None if number % 7 == 0 else float(number) for number in numbers],
                "d": pa.array([f"word {number % (5 + file)}" for number in numbers]).dictionary_encode(),
            }
        )
        pq.write_table(table, directory / f"{file}.parquet")
