"""The contract of a backend. Sail's process imports it too, so nothing here needs more than pyarrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa


@dataclass(frozen=True)
class Reply:
    """The rows of a query, and the bytes that sparkfusion's stages wrote for each other; None for other engines."""

    table: pa.Table
    shuffled_bytes: int | None = None


Ask = Callable[[str], Reply]
"""Runs one query, from its text to all of its rows. May raise anything."""

Tables = Mapping[str, Path]
"""The directory of Parquet files of each table."""

Backend = Callable[[Tables, Path], AbstractContextManager[Mapping[str, Ask]]]
"""Starts the engines of one process, by their names, with a directory of their own for files."""

_QUOTED = re.compile(r'"([^"]+)"')


def in_spark_dialect(sql: str) -> str:
    """A query whose quoted names Spark and Sail understand. No query of TPC has such quotes within a text.

    >>> in_spark_dialect('select count(*) as "order count"')
    'select count(*) as `order count`'
    """
    return _QUOTED.sub(r"`\1`", sql)
