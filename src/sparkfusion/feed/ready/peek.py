"""Find the schema of a file, from its beginning or its end."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import SessionContext

from sparkfusion.errors import SparkfusionError, UserError, first_words
from sparkfusion.feed.ready.file_access import FileAccess, LocalFileAccess
from sparkfusion.feed.ready.plain_schema import plain_schema

_HEAD_BYTES = 4 * 1024 * 1024
_OF_LINES = ("csv", "json")


def file_schema(access: FileAccess, path: str, format: str) -> pa.Schema:
    """The schema of a file. For CSV and JSON, DataFusion infers it from the first lines."""
    try:
        if format == "parquet":
            with access.open(path) as file:
                return plain_schema(pq.read_schema(file))
        with tempfile.TemporaryDirectory() as directory:
            return plain_schema(_guess_schema(access, path, format, Path(directory) / f"0.{format}"))
    except SparkfusionError:
        raise
    except Exception as error:
        raise UserError(
            f"cannot read the columns of {path!r} as {format}: {first_words(error)}",
            hint="pass schema=pyarrow.schema([…])",
        ) from error


def _guess_schema(access: FileAccess, path: str, format: str, copy: Path) -> pa.Schema:
    if isinstance(access, LocalFileAccess):
        copy.symlink_to(path)
    else:
        copy.write_bytes(_head(access, path, whole_lines=format in _OF_LINES))
    return getattr(SessionContext(), f"read_{format}")(str(copy)).schema()


def _head(access: FileAccess, path: str, *, whole_lines: bool) -> bytes:
    with access.open(path) as file:
        head: bytes = file.read(_HEAD_BYTES)
        cut = head.rfind(b"\n") + 1
        return head[:cut] if whole_lines and cut and len(head) == _HEAD_BYTES else head
