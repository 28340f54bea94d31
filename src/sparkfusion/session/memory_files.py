"""The files of an in-memory table: its rows, written for tasks, one version after the other."""

from __future__ import annotations

import os
import shutil
import weakref
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sparkfusion.session.query import conform

_ROW_GROUP = 1 << 16
_MOST_FILES = 16


class TableFiles:
    """The rows of one version of a table. They are removed when neither the table nor a query needs them.

    Attributes:
        links: where plans look for each file, until the next version replaces it.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory
        self.links: dict[Path, Path] = {}
        remove_with(self, directory)


def remove_with(owner: object, path: Path) -> None:
    """Remove a file or a directory when its owner is gone, or the interpreter exits."""
    weakref.finalize(owner, _remove, path, os.getpid())


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child must not take its parent's files away
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def write_version(directory: Path, batches: list[pa.RecordBatch], schema: pa.Schema, links: Path) -> TableFiles:
    """Write all rows, in their order, to several files: tasks can share files, even if DataFusion would not split one.

    Args:
        directory: a new one, named by table and version.
        links: the directory where plans of the table look; from now on they find these files.
    """
    made = TableFiles(directory)
    rows = pa.Table.from_batches([conform(batch, schema) for batch in batches], schema=schema)
    size = -(-rows.num_rows // max(2, min(_MOST_FILES, rows.num_rows // _ROW_GROUP)))
    for number, start in enumerate(range(0, rows.num_rows, size)):
        path = directory / f"{number:02d}.parquet"
        made.links[links / f"{directory.name}-{path.name}"] = path
        part = rows.slice(start, size)
        pq.write_table(
            part, path, row_group_size=_ROW_GROUP, compression="none", use_dictionary=False, write_statistics=False
        )
    for old in links.iterdir():
        old.unlink()
    for link, path in made.links.items():
        link.symlink_to(path)
    return made


def fits(schema: pa.Schema) -> bool:
    """Whether Parquet returns every value, and every type, unchanged."""
    distinct = len(set(schema.names)) == len(schema) > 0
    return distinct and all(_fits_type(field.type) and not field.metadata for field in schema)


def _fits_type(kind: pa.DataType) -> bool:
    return (
        pa.types.is_integer(kind)
        or kind in (pa.float32(), pa.float64(), pa.bool_(), pa.date32())
        or kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view())
        or pa.types.is_decimal128(kind)
        or (pa.types.is_timestamp(kind) and kind.unit in ("ms", "us", "ns"))
    )
