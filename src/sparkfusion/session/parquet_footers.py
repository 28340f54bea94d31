"""Whether DataFusion reads Parquet files as Spark does: what their footers say, compared with the table's schema.

Strict on purpose. A type, a spelling or a calendar that the two might read differently is a reason to let Spark read.

INT96 timestamps are instants: Spark and DataFusion read them as microseconds in UTC (`READ_INT96`), and Spark writes
them only for such columns.
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

from sparkfusion.runner.base import CatalogFile, SparkDates
from sparkfusion.session.file_end import FileEnd, ReadEnd
from sparkfusion.urls import is_url

READ_INT96 = {
    "datafusion.execution.parquet.coerce_int96": "us",
    "datafusion.execution.parquet.coerce_int96_tz": "UTC",
}
"""Options of DataFusion for a table whose INT96 timestamps are instants in microseconds, as Spark reads them."""

_INSTANT = pa.timestamp("us", "UTC")
_SPARK_VERSION = b"org.apache.spark.version"
_ARROW_SCHEMA = b"ARROW:schema"  # DataFusion reads INT96 in the unit that it says, and rounds otherwise than Spark
_LEGACY = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_FIRST_VERSION = (3, 0)  # from here on Spark writes the calendar that Arrow has
_FIRST_OF_INT96 = (3, 1)  # and from here on in INT96 timestamps too
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
        schema: as Arrow reads it, with INT96 timestamps as microseconds in UTC if DataFusion reads them so.
        int96: the columns with INT96 timestamps. `decimals_in_bytes`: whose decimals are byte arrays.
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

    def read(self, files: Sequence[CatalogFile], read_end: ReadEnd) -> list[Footer]:
        """The footers of these files. Raises what pyarrow raises if one cannot be read.

        Args:
            read_end: reads the last bytes of a file that is not on this machine.
        """
        versions = {file.path: version_of(file) for file in files}
        with self._lock:
            if len(self._known) > _MOST_FOOTERS:
                self._known.clear()
            known = {path: self._known[path] for path in versions if path in self._known}
        new = [file for file in files if file.path not in known or known[file.path][0] != versions[file.path]]
        for file, footer in zip(new, _read_all(new, read_end), strict=True):
            known[file.path] = versions[file.path], footer
        with self._lock:
            self._known |= {file.path: known[file.path] for file in new}
        return [known[file.path][1] for file in files]


def version_of(file: CatalogFile) -> Version:
    """What changes when a file is replaced."""
    if is_url(file.path):
        return file.size, file.modified, 0
    found = Path(file.path).stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


def _read_all(files: Sequence[CatalogFile], read_end: ReadEnd) -> Iterable[Footer]:
    def read(file: CatalogFile) -> Footer:
        return read_footer(FileEnd(file, read_end) if is_url(file.path) else file.path)

    if len(files) < _READERS:
        return [read(file) for file in files]
    with ThreadPoolExecutor(_READERS, "sparkfusion-footers") as pool:
        return list(pool.map(read, files))


def read_footer(source: str | FileEnd) -> Footer:
    found = pq.read_metadata(source)
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
    read = [_with_instants(field, field.name, int96) for field in schema]
    metadata = found.metadata or {}
    if sum(instants for _, instants in read) == len(int96) and _ARROW_SCHEMA not in metadata:
        schema = pa.schema([field for field, _ in read])  # else a path is not what it seems, or the unit is another
    instants = tuple(dict.fromkeys(field.name for field, instants in read if instants))
    return Footer(schema, instants, tuple(decimals), _calendar(metadata, has_int96=bool(int96)), codec)


def _with_instants(field: pa.Field, path: str, int96: Sequence[str]) -> tuple[pa.Field, int]:
    """A field with INT96 timestamps as what they are, and how many of them it has.

    Args:
        path: of the field in the file. `int96`: the paths of all columns that are stored so.
    """
    kind = field.type
    if path in int96 and pa.types.is_timestamp(kind):
        return field.with_type(_INSTANT), 1
    if pa.types.is_struct(kind):
        inner = [_with_instants(each, f"{path}.{each.name}", int96) for each in kind]
        made = pa.struct([each for each, _ in inner])
    elif pa.types.is_list(kind):
        inner = [_with_instants(kind.value_field, f"{path}.list.{kind.value_field.name}", int96)]
        made = pa.list_(inner[0][0])
    else:
        return field, 0
    return field.with_type(made), sum(instants for _, instants in inner)


def _calendar(metadata: dict[bytes, bytes], *, has_int96: bool) -> str:
    if any(key in metadata for key in _LEGACY):
        return "legacy"
    if _SPARK_VERSION not in metadata:
        return "other"
    major, _, rest = metadata[_SPARK_VERSION].decode().partition(".")
    version = (int(major), int(rest.split(".")[0])) if major.isdigit() and rest.split(".")[0].isdigit() else (0, 0)
    return "spark" if version >= (_FIRST_OF_INT96 if has_int96 else _FIRST_VERSION) else "legacy"


@lru_cache(maxsize=1024)
def why_different(footer: Footer, table: pa.Schema, partitions: tuple[str, ...], dates: SparkDates) -> str | None:
    """Why Spark might read a file in another way than DataFusion; None if both read the same.

    Args:
        table: the table's schema, as Spark's rows would be in Arrow. A column that the file lacks is NULL to both.
        partitions: those of its columns whose values are not in files.
        dates: how Spark reads dates and timestamps now.
    """
    if footer.codec not in _CODECS:
        return f"a file is compressed with {footer.codec}"
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
        if (reason := _why_other_dates(footer, field, dates)) is not None:
            return reason
    return None


def _why_other_dates(footer: Footer, field: pa.Field, dates: SparkDates) -> str | None:
    if field.name in footer.int96 and dates.why_int96 is not None:
        return f"column {field.name!r} has INT96 timestamps, and {dates.why_int96}"
    trusted = dates.trusts_int96 if field.name in footer.int96 else dates.trusts_dates
    if _has_dates(field.type) and (footer.calendar == "legacy" or (footer.calendar == "other" and not trusted)):
        return f"the dates of column {field.name!r} may be in another calendar"
    return None


def _reads_equal(stored: pa.DataType, wanted: pa.DataType) -> bool:
    stored, wanted = _small(stored), _small(wanted)
    if pa.types.is_timestamp(wanted):
        return bool(stored == (_INSTANT if wanted.tz is not None else pa.timestamp("us")))
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
