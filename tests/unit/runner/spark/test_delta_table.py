"""Which Delta tables DataFusion may read from their files, and that it reads what deltalake reads."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from sparkfusion.feed.ready.plain_schema import plain_schema
from sparkfusion.runner.spark.delta_table import delta_files
from sparkfusion.runner.spark.listed_files import OnlySparkError
from sparkfusion.session.linked_files import LinkedFiles
from tests.suites.delta_logs import VECTOR, write_log
from tests.suites.hidden_package import hide_package

DAY = datetime.date(2024, 2, 29)


def spark_lists(path: Path, version: int) -> list[str]:
    return [uri.removeprefix("file://") for uri in deltalake.DeltaTable(str(path), version).file_uris()]


def read(path: Path, version: int) -> list[dict[str, Any]]:
    """The rows of a version, read from its files by DataFusion."""
    listed = delta_files(str(path), version, spark_lists(path, version))
    assert listed.origin == f"version {version} of a Delta table"
    schema = plain_schema(pa.schema(deltalake.DeltaTable(str(path), version).schema().to_arrow()))
    links = LinkedFiles()
    try:
        dataframe = links.read("t", listed.files, schema, listed.partitions, listed.origin)
        return sorted(dataframe.to_pylist(), key=lambda row: row["v"])
    finally:
        links.close()


def test_every_version_has_the_rows_that_deltalake_reads(tmp_path: Path) -> None:
    table = pa.table(
        {"p": [1, 1, None], "v": [1, 2, 3], "day": pa.array([DAY] * 3, pa.date32()), "q": ["a b", "", "c"]}
    )
    plain = table.slice(0, 1)
    deltalake.write_deltalake(str(tmp_path), plain, partition_by=["p", "day"])
    more = table.slice(2).append_column("extra", [["x"]])
    deltalake.write_deltalake(str(tmp_path), more, mode="append", schema_mode="merge")
    deltalake.DeltaTable(str(tmp_path)).update({"q": "'changed'"}, predicate="v = 1")
    deltalake.DeltaTable(str(tmp_path)).delete("v = 3")
    deltalake.write_deltalake(str(tmp_path), plain.select(["v", "p", "day"]), mode="overwrite", schema_mode="overwrite")
    for version in range(5):
        expected = deltalake.DeltaTable(str(tmp_path), version).to_pyarrow_table().to_pylist()
        assert read(tmp_path, version) == sorted(expected, key=lambda row: row["v"])


def test_a_table_without_rows_and_a_partition_without_a_text(tmp_path: Path) -> None:
    schema = pa.schema([("p", pa.string()), ("v", pa.int64())])
    deltalake.write_deltalake(str(tmp_path), schema.empty_table(), partition_by=["p"])
    assert read(tmp_path, 0) == []
    deltalake.write_deltalake(str(tmp_path), pa.table({"p": [None], "v": [1]}, schema), mode="append")
    assert read(tmp_path, 1) == [{"p": None, "v": 1}]


@pytest.mark.parametrize(
    ("reason", "features", "settings", "add"),
    [
        ("it uses deletionVectors", ["deletionVectors"], None, {"deletionVector": VECTOR}),
        ("it uses columnMapping", ["columnMapping"], {"delta.columnMapping.mode": "name"}, None),
        ("it uses columnMapping", None, {"delta.columnMapping.mode": "id"}, None),
        ("it uses typeWidening", ["typeWidening"], None, None),
    ],
)
def test_tables_whose_files_do_not_tell_the_rows(
    tmp_path: Path, reason: str, features: Any, settings: Any, add: Any
) -> None:
    write_log(tmp_path, features=features, settings=settings, add=add)
    with pytest.raises(OnlySparkError, match=reason):
        delta_files(str(tmp_path), 0, [f"{tmp_path}/0.parquet"])


def test_a_feature_that_nobody_knows(tmp_path: Path) -> None:
    write_log(tmp_path, features=["somethingNew"])
    with pytest.raises(OnlySparkError, match="somethingNew"):
        delta_files(str(tmp_path), 0, [f"{tmp_path}/0.parquet"])


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (pa.array(["a/b"]), "partition column 'p' has the value 'a/b'|characters that need escapes"),
        (pa.array(["__HIVE_DEFAULT_PARTITION__"]), "'p' has the value '__HIVE_DEFAULT_PARTITION__'"),
        (pa.array([1.5]), r"'p' has the value 1\.5"),
        (pa.array([True]), "'p' has the value True"),
    ],
)
def test_partition_values_that_directories_cannot_tell(tmp_path: Path, values: pa.Array, reason: str) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.table({"p": values, "v": [1]}), partition_by=["p"])
    with pytest.raises(OnlySparkError, match=reason):
        delta_files(str(tmp_path), 0, spark_lists(tmp_path, 0))


def test_files_that_spark_lists_otherwise(tmp_path: Path) -> None:
    deltalake.write_deltalake(str(tmp_path), pa.table({"v": [1]}))
    deltalake.write_deltalake(str(tmp_path), pa.table({"v": [2]}), mode="append")
    with pytest.raises(OnlySparkError, match="Spark and deltalake list different files for its version 0"):
        delta_files(str(tmp_path), 0, spark_lists(tmp_path, 1))
    with pytest.raises(OnlySparkError, match="cannot open the Delta table"):
        delta_files(str(tmp_path), 7, [])


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hide_package(monkeypatch, "deltalake")
    with pytest.raises(OnlySparkError, match=r"needs deltalake, which is not installed .*sparkfusion\[delta\]"):
        delta_files(str(tmp_path), 0, [])
