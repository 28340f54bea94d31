"""The files of a table of Spark's catalog, as `table_files.py`, `delta_table.py` and `iceberg_table.py` list them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from sparkfusion.feed.ready.hive import NULL_VALUE
from sparkfusion.runner.base import CatalogFile

PLAIN_TEXT = re.compile(r"[\w .,+@~-]+", re.ASCII)
"""Texts that are the same in the name of a directory and in SQL."""
PLAIN_NAME = re.compile(r"\w+", re.ASCII)
_OBJECT_STORES = frozenset({"s3", "s3a", "s3n", "gs", "abfs", "abfss"})
_PLAIN_PATH = re.compile(r"[\w .,+@~=/-]+", re.ASCII)


class OnlySparkError(Exception):
    """Why only Spark can read a table."""


@dataclass(frozen=True)
class ListedFiles:
    """All files of a table.

    Attributes:
        partitions: the columns whose values are not in the files.
        origin: the version of the table that they are, in words; empty if it has none.
        why_int96: why its INT96 timestamps are not read as Spark reads those of other files; None if they are.
    """

    files: tuple[CatalogFile, ...]
    partitions: tuple[str, ...] = ()
    origin: str = ""
    why_int96: str | None = None


def file_path(url: str) -> str:
    """The path of a Parquet file of this machine, or its URL in an object store. `url`: as Spark names it."""
    parts = urlsplit(url)
    path = parquet_path(unquote(parts.path))
    if parts.scheme in _OBJECT_STORES and parts.netloc:
        return f"{parts.scheme}://{parts.netloc}{path}"
    if parts.scheme != "file" or parts.netloc:
        raise OnlySparkError(f"its files are at {parts.scheme}://{parts.netloc}, not on this machine")
    return path


def parquet_path(path: str) -> str:
    """The path of a Parquet file. Raises `OnlySparkError` if it would have to be escaped in a plan or a URL."""
    if not _PLAIN_PATH.fullmatch(path):
        raise OnlySparkError("the path of a file has characters that need escapes")
    if not path.endswith(".parquet"):
        raise OnlySparkError("it has files whose names do not end in .parquet")
    return path


def partition_texts(columns: Iterable[str], values: Iterable[Any]) -> tuple[str | None, ...]:
    """The values of a file's partition as texts. Raises `OnlySparkError` if a text would not mean the value.

    >>> partition_texts(["a", "b", "c"], [7, None, date(2026, 1, 31)])
    ('7', None, '2026-01-31')
    """
    return tuple(_as_text(column, value) for column, value in zip(columns, values, strict=True))


def _as_text(column: str, value: Any) -> str | None:
    if not PLAIN_NAME.fullmatch(column):
        raise OnlySparkError(f"the name of partition column {column!r} has characters that need escapes")
    if value is None:
        return None
    if isinstance(value, str) and PLAIN_TEXT.fullmatch(value) and value != NULL_VALUE:
        return value
    if type(value) is int or (isinstance(value, date) and not isinstance(value, datetime)):
        return str(value)
    raise OnlySparkError(f"partition column {column!r} has the value {value!r}")


def lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def class_name(thing: Any) -> str:
    """The name of a Java object's class, with its package."""
    return str(thing.getClass().getName())


def simple_class(thing: Any) -> str:
    return str(thing.getClass().getSimpleName())
