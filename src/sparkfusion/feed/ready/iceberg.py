"""IcebergFiles: the files of one snapshot of an Iceberg table."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sparkfusion.errors import SparkfusionError, UserError, first_words
from sparkfusion.extras import import_extra
from sparkfusion.feed.provider import FeedContext, Reader, WorkUnitFeedProvider
from sparkfusion.feed.ready.bounds import comparisons
from sparkfusion.feed.ready.iceberg_schema import check_readable_by_name
from sparkfusion.feed.ready.plain_files import PlainFile, refusal
from sparkfusion.feed.ready.plain_schema import plain_schema
from sparkfusion.feed.units import FileUnit

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

_COMPARED = {"int": int, "long": int, "date": datetime.date, "string": str}
_S3 = re.compile(r"s3[an]://")


class IcebergFiles(WorkUnitFeedProvider):
    """The files of an Iceberg table, as it is when this object is made. Iceberg's planning leaves out files that
    conditions on integers, dates and strings rule out.

    Refused, because DataFusion's own scan would read them wrongly: files with deletes, other formats than Parquet, and
    tables whose columns were renamed, changed or added again. Needs the extra `iceberg`.

    Args:
        table: a pyiceberg `Table`, or a catalog (or its name) and the table's name in it.
        snapshot_id: an older snapshot than the current one.
    """

    format = "parquet"
    reader: Reader | None = None

    def __init__(self, table: Table | tuple[Catalog | str, str], *, snapshot_id: int | None = None) -> None:
        import_extra("pyiceberg.table", "iceberg", "this feed")
        self._table = table if not isinstance(table, tuple) else _load_table(*table)
        self._name = ".".join(self._table.name())
        found = self._table.snapshot_by_id(snapshot_id) if snapshot_id is not None else self._table.current_snapshot()
        if snapshot_id is not None and found is None:
            raise UserError(f"Iceberg table {self._name} has no snapshot {snapshot_id}")
        self._snapshot = found
        own = found.schema_id if found is not None and snapshot_id is not None else None
        self._columns = self._table.schema() if own is None else self._table.schemas()[own]
        check_readable_by_name(self._table, self._columns, self._name)
        said = found.summary.additional_properties if found is not None and found.summary is not None else {}
        self.bytes = int(said["total-files-size"]) if "total-files-size" in said else None
        self.rows = int(said["total-records"]) if "total-records" in said else None

    def schema(self) -> pa.Schema:
        return plain_schema(self._columns.as_arrow())

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[FileUnit]:
        if self._snapshot is None:
            return
        for file in self._plain_files(self._condition(context)):
            if context.stopped:
                return
            yield FileUnit(file.path, file.bytes)

    def files(self) -> list[PlainFile]:
        """All its files. Raises a `NotPlainFilesError` if a file has deleted rows, or is not a Parquet file."""
        from pyiceberg.expressions import AlwaysTrue

        return list(self._plain_files(AlwaysTrue())) if self._snapshot is not None else []

    def _plain_files(self, condition: Any) -> Iterator[PlainFile]:
        for task in self._plan(condition):
            file = task.file
            if task.delete_files:
                reason = "it has rows that are deleted by delete files; compact it first"
                raise refusal("Iceberg", self._name, reason)
            if file.file_format.name != "PARQUET":
                raise refusal("Iceberg", self._name, f"it has files of the format {file.file_format.name}")
            yield PlainFile(_unit_path(file.file_path), file.file_size_in_bytes)

    def _plan(self, condition: Any) -> Iterator[Any]:
        assert self._snapshot is not None
        try:
            scan = self._table.scan(row_filter=condition, snapshot_id=self._snapshot.snapshot_id)
            yield from scan.plan_files()
        except SparkfusionError:
            raise
        except Exception as error:
            raise refusal("Iceberg", self._name, first_words(error)) from error

    def _condition(self, context: FeedContext) -> Any:
        from pyiceberg import expressions

        made = {
            "=": expressions.EqualTo,
            "!=": expressions.NotEqualTo,
            "<": expressions.LessThan,
            "<=": expressions.LessThanOrEqual,
            ">": expressions.GreaterThan,
            ">=": expressions.GreaterThanOrEqual,
        }
        columns = [field.name for field in self._columns.fields if str(field.field_type) in _COMPARED]
        found: Any = expressions.AlwaysTrue()
        for column, operator, value in comparisons(context.filters, columns, set(_COMPARED.values())):
            if operator in made:
                found = expressions.And(found, made[operator](column, value))
        return found


def _load_table(catalog: Catalog | str, name: str) -> Table:
    from pyiceberg.catalog import load_catalog

    try:
        return (load_catalog(catalog) if isinstance(catalog, str) else catalog).load_table(name)
    except Exception as error:
        raise UserError(f"cannot load the Iceberg table {name!r}: {first_words(error)}") from error


def _unit_path(path: str) -> str:
    """The path for a unit. Iceberg's paths are not encoded like URLs, even if they look like it."""
    return path.removeprefix("file://") if path.startswith("file://") else _S3.sub("s3://", path)
