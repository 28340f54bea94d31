"""Whether DataFusion reads Parquet files as Spark does: what their footers say, compared with the table's schema.

Strict on purpose. A type, a spelling or a calendar that the two might read differently is a reason to let Spark read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_SPARK_VERSION = b"org.apache.spark.version"
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_FIRST_VERSION = (3, 0)  # from here on Spark writes the calendar that Arrow has
_CODECS = frozenset({"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4_RAW"})
_MOST_FOOTERS = 200_000
_READERS = 8
_PLAIN = (
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.float32(), pa.float64(), pa.date32()),
    *(pa.string(), pa.binary()),
)
_FORMS = {
    **dict.fromkeys((pa.large_string(), pa.string_view()), pa.string()),
    **dict.fromkeys((pa.large_binary(), pa.binary_view()), pa.binary()),
}

Version = tuple[int, int, int]


@dataclass(frozen=True)
class Footer:
    """What matters of a file's footer.

    Attributes:
        schema: as Arrow reads it.
        int96: the columns whose timestamps are INT96. `decimals_in_bytes`: whose decimals are byte arrays.
        calendar: "spark" if Spark wrote the file in the calendar that Arrow has, "legacy" if in an older one, "other"
            if another program wrote it.
        codec: the compression of its first column.
    """

    schema: pa.Schema
    int96: tuple[str, ...]
    decimals_in_bytes: tuple[str, ...]
    calendar: str
    codec: str


class Footers:
    """The footers of the files that a session has looked at. Each is read again when its file has changed. Any thread
    may call any method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Version, Footer]] = {}

    def read(self, paths: Sequence[str]) -> list[Footer]:
        """The footers of these files. Raises what pyarrow raises if one cannot be read."""
        versions = {path: version_of(path) for path in paths}
        with self._lock:
            if len(self._known) > _MOST_FOOTERS:
                self._known.clear()
            known = {path: self._known[path] for path in paths if path in self._known}
        new = [path for path in paths if path not in known or known[path][0] != versions[path]]
        for path, footer in zip(new, _read_all(new), strict=True):
            known[path] = versions[path], footer
        with self._lock:
            self._known |= {path: known[path] for path in new}
        return [known[path][1] for path in paths]


def version_of(path: str) -> Version:
    """What changes when a file is replaced."""
    found = Path(path).stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


def _read_all(paths: Sequence[str]) -> Iterable[Footer]:
    if len(paths) < _READERS:
        return [read_footer(path) for path in paths]
    with ThreadPoolExecutor(_READERS, "sparkfusion-footers") as pool:
        return list(pool.map(read_footer, paths))


def read_footer(path: str) -> Footer:
    found = pq.read_metadata(path)
    int96, decimals = [], []
    for index in range(len(found.schema)):
        column = found.schema.column(index)
        if column.physical_type == "INT96":
            int96.append(column.path)
        if column.physical_type == "BYTE_ARRAY" and column.logical_type.type == "DECIMAL":
            decimals.append(column.path)
    columns = found.num_row_groups and found.num_columns
    codec = found.row_group(0).column(0).compression if columns else "UNCOMPRESSED"
    schema = found.schema.to_arrow_schema().remove_metadata()
    return Footer(schema, tuple(int96), tuple(decimals), _calendar(found.metadata or {}), codec)


def _calendar(metadata: dict[bytes, bytes]) -> str:
    if any(key in metadata for key in _LEGACY):
        return "legacy"
    if _SPARK_VERSION not in metadata:
        return "other"
    major, _, rest = metadata[_SPARK_VERSION].decode().partition(".")
    version = (int(major), int(rest.split(".")[0])) if major.isdigit() and rest.split(".")[0].isdigit() else (0, 0)
    return "spark" if version >= _FIRST_VERSION else "legacy"


@lru_cache(maxsize=1024)
def why_different(footer: Footer, table: pa.Schema, partitions: tuple[str, ...], *, trusts_dates: bool) -> str | None:
    """Why Spark might read a file in another way than DataFusion; None if both read the same.

    Args:
        table: the table's schema, as Spark's rows would be in Arrow. A column that the file lacks is NULL to both.
        partitions: those of its columns whose values are not in files.
        trusts_dates: Spark takes dates of other programs as they are.
    """
    if footer.codec not in _CODECS:
        return f"a file is compressed with {footer.codec}"
    if footer.int96:
        return f"column {footer.int96[0]!r} has INT96 timestamps"
    if footer.decimals_in_bytes:
        return f"column {footer.decimals_in_bytes[0]!r} has decimals that are stored as byte arrays"
    spelled: dict[str, list[str]] = {}
    for name in footer.schema.names:
        spelled.setdefault(name.lower(), []).append(name)
    for name in partitions:
        if name.lower() in spelled:
            return f"partition column {name!r} is in a file too"
    for field in table:
        found = spelled.get(field.name.lower(), [])
        if field.name in partitions or not found:
            continue
        if found != [field.name]:
            return f"column {field.name!r} is called {', '.join(map(repr, found))} in a file"
        stored = footer.schema.field(field.name).type
        if not _reads_equal(stored, field.type):
            return f"column {field.name!r} is {stored} in a file, and {field.type} in the catalog"
        if _has_dates(field.type) and (
            footer.calendar == "legacy" or (footer.calendar == "other" and not trusts_dates)
        ):
            return f"the dates of column {field.name!r} may be of another calendar"
    return None


def _reads_equal(stored: pa.DataType, wanted: pa.DataType) -> bool:
    stored, wanted = _small(stored), _small(wanted)
    if pa.types.is_timestamp(wanted):
        return bool(stored == (pa.timestamp("us", "UTC") if wanted.tz is not None else pa.timestamp("us")))
    if pa.types.is_list(wanted):
        return pa.types.is_list(stored) and _fields_equal([stored.value_field], [wanted.value_field])
    if pa.types.is_struct(wanted):
        return pa.types.is_struct(stored) and _fields_equal(list(stored), list(wanted))
    return bool(stored == wanted) and (wanted in _PLAIN or pa.types.is_decimal128(wanted))


def _fields_equal(stored: Sequence[pa.Field], wanted: Sequence[pa.Field]) -> bool:
    """Fields inside of a column: the same ones in the same order. A file may exclude NULLs that the catalog allows."""
    return len(stored) == len(wanted) and all(
        one.name == other.name and (other.nullable or not one.nullable) and _reads_equal(one.type, other.type)
        for one, other in zip(stored, wanted, strict=True)
    )


def _small(kind: pa.DataType) -> pa.DataType:
    """Texts and binaries in one of their forms: which form a program had in memory does not change its files."""
    return _FORMS.get(kind, kind)


def _has_dates(kind: pa.DataType) -> bool:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind) or any(_has_dates(field.type) for field in fields)
