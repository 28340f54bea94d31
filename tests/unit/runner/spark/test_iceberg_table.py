"""Which Iceberg tables DataFusion may read from their files, and that it reads what pyiceberg reads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sparkfusion.feed.ready.plain_schema import plain_schema
from sparkfusion.runner.spark.iceberg_table import iceberg_files
from sparkfusion.runner.spark.listed_files import OnlySparkError
from sparkfusion.session.linked_files import LinkedFiles
from tests.suites.hidden_package import hide_package
from tests.suites.iceberg_tables import iceberg_catalog

COLUMNS = ["k", "v"]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Any]:
    """A table of two snapshots, partitioned since the second."""
    with iceberg_catalog(tmp_path) as catalog:
        made = catalog.create_table("n.t", schema=pa.schema([("k", pa.string()), ("v", pa.int64())]))
        made.append(pa.table({"k": ["a", None], "v": [1, 2]}))
        with made.update_spec() as update:
            update.add_identity("k")
        made.append(pa.table({"k": ["b", "a"], "v": [3, 4]}))
        yield made


def current(table: Any) -> int:
    return int(table.current_snapshot().snapshot_id)


def read(table: Any, chosen: int | None, columns: list[str]) -> list[dict[str, Any]]:
    """The rows of a snapshot, read from its files by DataFusion."""
    listed = iceberg_files(table.metadata_location, current(table), chosen, columns)
    scan = table.scan(snapshot_id=chosen)
    links = LinkedFiles()
    try:
        dataframe = links.read("t", listed.files, plain_schema(scan.projection().as_arrow()), ())
        return sorted(dataframe.to_pylist(), key=lambda row: row["v"])
    finally:
        links.close()


def test_every_snapshot_has_the_rows_that_pyiceberg_reads(table: Any) -> None:
    from pyiceberg.types import StringType

    with table.update_schema() as update:
        update.add_column("extra", StringType())
    table.append(pa.table({"k": ["c"], "v": [5], "extra": ["x"]}))
    table.delete("v = 1")
    first, second, third, *_ = [entry.snapshot_id for entry in table.history()]
    chosen = [(first, COLUMNS), (second, COLUMNS), (third, [*COLUMNS, "extra"]), (None, [*COLUMNS, "extra"])]
    counts = []
    for snapshot, columns in chosen:
        rows = read(table, snapshot, columns)
        expected = table.scan(snapshot_id=snapshot).to_arrow().to_pylist()
        assert rows == sorted(expected, key=lambda row: row["v"])
        counts.append(len(rows))
    assert counts == [2, 4, 5, 4]


def test_metadata_as_a_hadoop_catalog_names_it(table: Any) -> None:
    """Such a catalog numbers its metadata, and Hadoop writes `file:` without slashes."""
    path = Path(table.metadata_location.removeprefix("file://"))
    shutil.copy(path, path.parent / "v2.metadata.json")
    listed = iceberg_files(f"file:{path.parent}/v2.metadata.json", current(table), None, COLUMNS)
    assert len(listed.files) == 3
    assert listed.origin == f"snapshot {current(table)} of an Iceberg table"
    assert listed.why_int96 is not None


def test_a_table_without_rows(table: Any, tmp_path: Path) -> None:
    empty = table.catalog.create_table("n.empty", schema=pa.schema([("v", pa.int64())]))
    assert iceberg_files(empty.metadata_location, None, None, ["v"]).files == ()


def test_what_spark_sees_otherwise(table: Any) -> None:
    where = table.metadata_location
    with pytest.raises(OnlySparkError, match="different snapshots for the current one"):
        iceberg_files(where, 7, None, COLUMNS)
    with pytest.raises(OnlySparkError, match="has no snapshot 7"):
        iceberg_files(where, current(table), 7, COLUMNS)
    with pytest.raises(OnlySparkError, match="find different columns"):
        iceberg_files(where, current(table), None, ["v"])
    with pytest.raises(OnlySparkError, match="its metadata is at s3a://bucket, not on this machine"):
        iceberg_files("s3a://bucket/t/metadata/v1.metadata.json", 7, None, COLUMNS)
    with pytest.raises(OnlySparkError, match="its metadata is at hdfs://, not on this machine"):
        iceberg_files("hdfs:/v1.metadata.json", 7, None, COLUMNS)
    with pytest.raises(OnlySparkError, match="pyiceberg cannot read its metadata"):
        iceberg_files(f"{where}.gone", 7, None, COLUMNS)


def test_a_renamed_column_and_other_formats(table: Any) -> None:
    with table.update_schema() as update:
        update.rename_column("v", "w")
    with pytest.raises(OnlySparkError, match="column 'v' was renamed to 'w'"):
        iceberg_files(table.metadata_location, current(table), None, ["k", "w"])
    with table.transaction() as change:
        change.set_properties({"encryption.key-id": "7"})
    with pytest.raises(OnlySparkError, match="encrypted"):
        iceberg_files(table.metadata_location, current(table), None, ["k", "w"])
    path = Path(table.metadata_location.removeprefix("file://"))
    newer = path.parent / "newer.metadata.json"
    newer.write_text(path.read_text().replace('"format-version":2', '"format-version":3,"next-row-id":0'))
    with pytest.raises(OnlySparkError, match="its format has the version 3"):
        iceberg_files(str(newer), current(table), None, ["k", "w"])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_package(monkeypatch, "pyiceberg")
    with pytest.raises(OnlySparkError, match=r"needs pyiceberg, which is not installed .*sparkfusion\[iceberg\]"):
        iceberg_files("/nowhere/v1.metadata.json", None, None, [])
