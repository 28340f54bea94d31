"""Iceberg tables of Spark's catalogs: the files of the snapshot that Spark would read.

Only tables whose rows are exactly the rows of these files are read this way; a table with delete files is not.
Spark's Iceberg catalog, of whatever kind, has loaded the table from a metadata file. The package `pyiceberg` reads the
same file, which never changes, and plans the scan of the same snapshot.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from sparkfusion.errors import UserError, first_words
from sparkfusion.extras import import_extra
from sparkfusion.feed.ready.iceberg import IcebergFiles
from sparkfusion.feed.ready.plain_files import NotPlainFilesError
from sparkfusion.runner.base import CatalogFile
from sparkfusion.runner.spark.listed_files import ListedFiles, OnlySparkError, class_name, parquet_path, simple_class

_TABLE = "org.apache.iceberg.spark.source.SparkTable"
_LOADED = "org.apache.iceberg.BaseTable"
_NEWEST_FORMAT = 2  # 3 has deletion vectors, default values and row lineage
_OTHER_ROWS = ("spark.wap.id", "spark.wap.branch")


def iceberg_table(analyzed: Any, optimized: Any) -> Any | None:
    """Spark's Iceberg table, if its plan is a plain scan of one; None if it is not.

    Args:
        analyzed: Spark's plan of the whole table, without aliases. `optimized`: the same, optimized.
    """
    if (simple_class(analyzed), simple_class(optimized)) != ("DataSourceV2Relation", "DataSourceV2ScanRelation"):
        return None
    table = optimized.relation().table()
    return table if class_name(table) == _TABLE else None


def list_iceberg_files(table: Any, options: Any, conf: Any, columns: list[str]) -> ListedFiles:
    """Every file of the snapshot that Spark would read. Raises `OnlySparkError` if the files are not enough.

    Args:
        table: Spark's Iceberg table. `options`: those of its scan. `conf`: Spark's settings.
        columns: the names of its columns, as Spark has them.
    """
    if not options.isEmpty():
        raise OnlySparkError("its scan has options, which may change what Spark reads")
    for name in _OTHER_ROWS:
        if conf.get(name, None) is not None:
            raise OnlySparkError(f"{name} is set")
    loaded = table.table()
    if class_name(loaded) != _LOADED:
        raise OnlySparkError(f"it is not a table of data but {class_name(loaded)}")
    if table.branch() is not None:
        raise OnlySparkError(f"it is the branch {table.branch()} of an Iceberg table")
    current = loaded.currentSnapshot()
    of_current = int(current.snapshotId()) if current is not None else None
    chosen = table.snapshotId()
    metadata = loaded.operations().current().metadataFileLocation()
    if metadata is None:
        raise OnlySparkError("its catalog does not report where its metadata is")
    return iceberg_files(str(metadata), of_current, int(chosen) if chosen is not None else None, columns)


def iceberg_files(metadata: str, current: int | None, chosen: int | None, columns: list[str]) -> ListedFiles:
    """The files of a snapshot of an Iceberg table.

    Args:
        metadata: the file with the table's metadata.
        current: the snapshot that is the newest to Spark. `chosen`: an older one that the query names.
        columns: the names of its columns, as Spark has them.
    """
    try:
        table = _open_table(metadata)
        known = table.current_snapshot()
        if (known.snapshot_id if known is not None else None) != current:
            raise OnlySparkError("Spark and pyiceberg take different snapshots for the current one")
        provider = IcebergFiles(table, snapshot_id=chosen)
        found = provider.files()
    except NotPlainFilesError as error:
        raise OnlySparkError(error.reason) from error
    except UserError as error:
        hint = f" ({error.hint})" if error.hint else ""
        raise OnlySparkError(f"{error.message}{hint}") from error
    if provider.schema().names != columns:
        raise OnlySparkError("Spark and pyiceberg find different columns")
    files = tuple(CatalogFile(_local(file.path)) for file in sorted(found, key=lambda file: file.path))
    snapshot = chosen if chosen is not None else current
    origin = f"snapshot {snapshot} of an Iceberg table" if snapshot is not None else ""
    return ListedFiles(files, origin=origin, why_int96="Iceberg has a reader of its own for them")


def _open_table(metadata: str) -> Any:
    tables = import_extra("pyiceberg.table", "iceberg", "reading an Iceberg table by DataFusion")
    try:
        table = tables.StaticTable.from_metadata(_local(metadata, what="its metadata is"))
    except OnlySparkError:
        raise
    except Exception as error:
        raise OnlySparkError(f"pyiceberg cannot read its metadata: {first_words(error)}") from error
    if table.metadata.format_version > _NEWEST_FORMAT:
        raise OnlySparkError(f"its format has the version {table.metadata.format_version}")
    if any(name.startswith("encryption.") for name in table.properties):
        raise OnlySparkError("its files are encrypted")
    return table


def _local(path: str, what: str = "its files are") -> str:
    """The path of a file of this machine. Iceberg's paths are not encoded like URLs."""
    for prefix in ("file://", "file:"):
        if path.startswith(f"{prefix}/"):
            path = path.removeprefix(prefix)
    if not path.startswith("/"):
        place = urlsplit(path)
        raise OnlySparkError(f"{what} at {place.scheme}://{place.netloc}, not on this machine")
    return parquet_path(path) if what.startswith("its files") else path
