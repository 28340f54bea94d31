"""Delta tables of Spark's catalog, with a stand-in for Spark's Delta package: DataFusion reads what deltalake lists."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator

import deltalake
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sparkfusion import Session
from tests.conftest import Connect
from tests.spark.catalog_rows import assert_like_spark, database, how, rows_of
from tests.spark.conf import settings
from tests.spark.delta_stub import create_delta_table, delta_stub

pytestmark = pytest.mark.long

COLUMNS = "region string, v bigint, day date"
DAY = datetime.date(2024, 1, 1)


def part(number: int) -> pa.Table:
    days = pa.array([DAY + datetime.timedelta(days=number)] * 4, pa.date32())
    values = pa.array(range(number * 4, number * 4 + 4), pa.int64())
    return pa.table({"region": ["north", None, "south", "south"], "v": values, "day": days})


@pytest.fixture(scope="module")
def db(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database with a Delta table of four versions: rows appended, a column added, rows deleted."""
    home = tmp_path_factory.mktemp("delta")
    root = home / "orders"
    deltalake.write_deltalake(str(root), part(0), partition_by=["region"])
    deltalake.write_deltalake(str(root), part(1), mode="append")
    more = part(2).append_column("extra", [["new"] * 4])
    deltalake.write_deltalake(str(root), more, mode="append", schema_mode="merge")
    deltalake.DeltaTable(str(root)).delete("v = 3")
    with (
        delta_stub(spark, home / "java"),
        database(spark, "sf_delta", home / "db") as name,
        settings(spark, parquet__datetimeRebaseModeInRead="CORRECTED"),
    ):
        for version in range(4):
            files = [path.removeprefix("file://") for path in deltalake.DeltaTable(str(root), version).file_uris()]
            columns = COLUMNS if version < 2 else f"{COLUMNS}, extra string"
            create_delta_table(spark, f"{name}.orders_{version}", home, root, version, files, columns)
            if version == 3:
                create_delta_table(spark, f"{name}.orders", home, root, version, files, columns)
                create_delta_table(spark, f"{name}.fewer", home, root, version, files[1:], columns)
        yield name


@pytest.fixture(scope="module")
def session(connect_shared: Connect) -> Session:
    return connect_shared({"sparkfusion.bytes_per_partition": 1})


def test_datafusion_reads_the_current_version(session: Session, spark: SparkSession, db: str) -> None:
    shown = how(session, f"{db}.orders")
    assert shown == "9 Parquet files of version 3 of a Delta table, read by DataFusion"
    answer = assert_like_spark(session, spark, f"select * from {db}.orders")
    assert answer.schema.names == ["region", "v", "day", "extra"]
    assert answer.num_rows == 11
    query = f"select v, extra from {db}.orders where region = 'south' and v > 5"
    assert_like_spark(session, spark, query)
    files = set(re.findall(r"part-[\w.-]+parquet", session.sql(query).explain_text()))
    assert len(files) == 3  # of nine: those of its partition


def test_a_version_is_read_by_datafusion_too(session: Session, spark: SparkSession, db: str) -> None:
    for text, version, count in (
        ("version as of 1", 1, 8),
        ("timestamp as of '2024-01-01'", 0, 4),
    ):
        query = session.sql(f"select * from {db}.orders {text}", dialect="spark")
        assert rows_of(query.collect()) == rows_of(spark.sql(f"select * from {db}.orders {text}").toArrow())
        assert query.count() == count
        assert f"of version {version} of a Delta table, read by DataFusion" in query.explain_text()


def test_files_that_the_log_does_not_have_are_left_to_spark(session: Session, spark: SparkSession, db: str) -> None:
    expected = "through Spark, because Spark and deltalake list different files for its version 3"
    assert how(session, f"{db}.fewer") == expected
    assert_like_spark(session, spark, f"select * from {db}.fewer")
