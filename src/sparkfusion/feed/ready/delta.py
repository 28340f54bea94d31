"""DeltaFiles: the files of one version of a Delta table."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from sparkfusion.errors import UserError, first_words
from sparkfusion.extras import import_extra
from sparkfusion.feed.provider import FeedContext, Reader, WorkUnitFeedProvider
from sparkfusion.feed.ready.bounds import comparisons, may_hold
from sparkfusion.feed.ready.hive import HiveColumn
from sparkfusion.feed.ready.plain_files import PlainFile, refusal
from sparkfusion.feed.ready.plain_schema import plain_schema
from sparkfusion.feed.units import FileUnit
from sparkfusion.urls import show_url, url_scheme, without_secrets

if TYPE_CHECKING:
    from deltalake import DeltaTable

_HARMLESS = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})


class DeltaFiles(WorkUnitFeedProvider):
    """The files of a Delta table, as it is when this object is made. Files that partition values or bounds rule out are
    left out.

    Refused, because DataFusion's own scan would read them wrongly: deletion vectors, column mapping, and every other
    feature that readers have to know. Needs the extra `delta`.

    Args:
        table: a path or URL, or a `deltalake.DeltaTable`.
        version: the version of the table at a path; None is the newest. A `DeltaTable` has its own version.
        storage_options: credentials and other options for deltalake. DataFusion needs the object store registered as
            well.
    """

    format = "parquet"
    reader: Reader | None = None

    def __init__(
        self,
        table: str | os.PathLike[str] | DeltaTable,
        version: int | None = None,
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        delta = import_extra("deltalake", "delta", "this feed")
        if isinstance(table, str | os.PathLike):
            opened = _open_table(delta, os.fspath(table), version, storage_options)
        elif version is None:
            opened = table
        else:
            raise UserError("give the version to the DeltaTable itself: deltalake.DeltaTable(…, version=…)")
        self._name = show_url(opened.table_uri)
        _refuse_unreadable(opened, self._name)
        self._schema = plain_schema(pa.schema(opened.schema().to_arrow()))
        self.partition_columns: list[HiveColumn] = [
            (name, self._schema.field(name).type) for name in opened.metadata().partition_columns
        ]
        for name, type in self.partition_columns:
            if pa.types.is_binary(type):
                raise refusal("Delta", self._name, f"its partition column {name!r} has bytes")
        self._files = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
        self._root = _root(opened.table_uri)
        self.bytes = sum(file["size_bytes"] for file in self._files)
        counts = [file.get("num_records") for file in self._files]
        self.rows = None if None in counts else sum(count for count in counts if count is not None)

    def schema(self) -> pa.Schema:
        return self._schema

    def files(self) -> list[PlainFile]:
        """All its files, with the values of `partition_columns`."""
        names = [f"partition.{name}" for name, _ in self.partition_columns]
        return [
            PlainFile(self._path(file["path"]), file["size_bytes"], tuple(file[name] for name in names))
            for file in self._files
        ]

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[FileUnit]:
        names = [name for name, _ in self.partition_columns]
        values = [{name: file[f"partition.{name}"] for name in names} for file in self._files]
        kept = context.keeps_each(values) if names else [True] * len(values)
        bounds = list(comparisons(context.filters, [name for name in self._schema.names if name not in names]))
        for file, own, keep in zip(self._files, values, kept, strict=True):
            if keep and all(
                may_hold(operator, value, file.get(f"min.{column}"), file.get(f"max.{column}"))
                for column, operator, value in bounds
            ):
                yield FileUnit(self._path(file["path"]), file["size_bytes"], partition_values=own)
            else:
                context.count("pruned")

    def _path(self, path: str) -> str:
        """Paths in the log are encoded like URLs. They are relative, except those of other tables (clones)."""
        return _root(path) if url_scheme(path) is not None else f"{self._root.rstrip('/')}/{unquote(path)}"


def _open_table(delta: Any, uri: str, version: int | None, options: Mapping[str, str] | None) -> Any:
    try:
        return delta.DeltaTable(uri, version=version, storage_options=dict(options) if options else None)
    except Exception as error:
        words = without_secrets(first_words(error), uri)
        for secret in (options or {}).values():
            words = words.replace(secret, "***") if len(secret) > 3 else words
        raise UserError(f"cannot open the Delta table {show_url(uri)}: {words}") from None


def _refuse_unreadable(table: Any, name: str) -> None:
    protocol, settings = table.protocol(), table.metadata().configuration
    needs = set(protocol.reader_features or ()) - _HARMLESS
    mapping = settings.get("delta.columnMapping.mode", "none")
    if mapping == "none":
        needs.discard("columnMapping")
    elif protocol.min_reader_version >= 2:
        needs.add("columnMapping")
    if '"variant"' not in table.schema().to_json():  # new tables of deltalake declare it even if unused
        needs -= {"variantType", "variantType-preview"}
    if "deletionVectors" in needs and not _has_deletion_vectors(table):
        needs.discard("deletionVectors")
    if needs or protocol.min_reader_version > 3:
        what = ", ".join(sorted(needs)) or f"reader version {protocol.min_reader_version}"
        raise refusal("Delta", name, f"it uses {what}")


def _has_deletion_vectors(table: Any) -> bool:
    """Whether the table has deletion vectors. True if that cannot be found out."""
    try:
        return any(batch.num_rows > 0 for batch in table.deletion_vectors())
    except Exception:
        return True


def _root(uri: str) -> str:
    """The directory of the files, as it is written in units."""
    return unquote(uri.removeprefix("file://"))
