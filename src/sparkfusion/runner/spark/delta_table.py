"""Delta tables of Spark's catalog: the files of the version that Spark would read.

Only tables whose rows are exactly the rows of these files are read this way; a table with deletion vectors is not.
Spark's Delta package decides which version it is and which files it has. The package `deltalake` reads the log of just
that version: the values of partitions, and whether rows of a file are deleted.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from sparkfusion.errors import UserError
from sparkfusion.extras import import_extra
from sparkfusion.feed.ready.delta import DeltaFiles
from sparkfusion.feed.ready.plain_files import NotPlainFilesError
from sparkfusion.runner.base import CatalogFile
from sparkfusion.runner.spark.listed_files import (
    ListedFiles,
    OnlySparkError,
    class_name,
    file_path,
    parquet_path,
    partition_texts,
)

_PACKAGE = "org.apache.spark.sql.delta."
_FORMAT = f"{_PACKAGE}DeltaParquetFileFormat"
_INDEXES = frozenset({f"{_PACKAGE}stats.PreparedDeltaFileIndex", f"{_PACKAGE}files.TahoeLogFileIndex"})


def is_delta(relation: Any) -> bool:
    """Whether Spark reads a relation of files with its Delta package."""
    return class_name(relation.fileFormat()) == _FORMAT


def list_delta_files(relation: Any, list_all: Any) -> ListedFiles:
    """Every file of the version that Spark would read. Raises `OnlySparkError` if the files are not enough.

    Args:
        relation: Spark's, of a Delta table. `list_all`: returns the URLs that a file index of Spark's lists.
    """
    index = relation.location()
    if class_name(index) not in _INDEXES:
        raise OnlySparkError(f"its files are listed by {class_name(index)}")
    table = urlsplit(str(index.path().toUri()))
    if table.scheme != "file" or table.netloc:
        raise OnlySparkError(f"it is a Delta table at {table.scheme}://{table.netloc}, not on this machine")
    version = int(index.version())
    listed = list_all(index)
    if int(index.version()) != version:
        raise OnlySparkError("it changed while its files were listed")
    return delta_files(str(index.path().toUri().getPath()), version, {file_path(url) for url in listed})


def delta_files(path: str, version: int, listed: Collection[str]) -> ListedFiles:
    """The files of a version of the Delta table at a path. `listed`: the files that Spark lists for it."""
    try:
        import_extra("deltalake", "delta", "reading a Delta table by DataFusion")
        table = DeltaFiles(path, version)
        found = table.files()
    except NotPlainFilesError as error:
        raise OnlySparkError(error.reason) from error
    except UserError as error:
        hint = f" ({error.hint})" if error.hint else ""
        raise OnlySparkError(f"{error.message}{hint}") from error
    names = tuple(name for name, _ in table.partition_columns)
    files = tuple(CatalogFile(parquet_path(file.path), partition_texts(names, file.values)) for file in found)
    if {file.path for file in files} != set(listed) or len(files) != len(listed):
        raise OnlySparkError(f"Spark and deltalake list different files for its version {version}")
    return ListedFiles(tuple(sorted(files, key=lambda file: file.path)), names, f"version {version} of a Delta table")
