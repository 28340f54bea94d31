"""Iceberg tables of Spark's catalogs, with a stand-in for Spark's Iceberg package: DataFusion reads the files of the
snapshot that Spark names, as pyiceberg plans them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sparkfusion import Session
from tests.conftest import Connect
from tests.spark.catalog_rows import how, rows_of
from tests.spark.iceberg_stub import describe_iceberg_table, iceberg_stub
from tests.suites.iceberg_tables import iceberg_catalog

pytestmark = pytest.mark.long

LAKE = "sf_iceberg.shop"


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A table with two snapshots, which Spark finds as `orders`, and as `branched` in a branch."""
    from pyiceberg.types import StringType

    home = tmp_path_factory.mktemp("iceberg")
    with iceberg_catalog(home) as catalog, iceberg_stub(spark, "sf_iceberg", home):
        made = catalog.create_table("n.t", schema=pa.schema([("k", pa.string()), ("v", pa.int64())]))
        made.append(pa.table({"k": ["a", "b"], "v": [1, 2]}))
        first = made.current_snapshot().snapshot_id
        with made.update_schema() as update:
            update.add_column("extra", StringType())
        made.append(pa.table({"k": ["a"], "v": [3], "extra": ["new"]}))
        now = {
            "metadata": made.metadata_location,
            "current": made.current_snapshot().snapshot_id,
            "columns": "k string, v bigint, extra string",
        }
        describe_iceberg_table(home, "orders", **now)
        describe_iceberg_table(home, f"orders@{first}", **now | {"columns": "k string, v bigint"})
        describe_iceberg_table(home, "branched", **now, branch="audit")
        yield made


@pytest.fixture(scope="module")
def session(connect_shared: Connect) -> Session:
    return connect_shared({"sparkfusion.bytes_per_partition": 1})


def test_datafusion_reads_the_current_snapshot(session: Session, table: Any) -> None:
    snapshot = table.current_snapshot().snapshot_id
    expected = f"2 Parquet files of snapshot {snapshot} of an Iceberg table, read by DataFusion"
    assert how(session, f"{LAKE}.orders") == expected
    answer = session.sql(f"select k, v, extra from {LAKE}.orders").collect()
    assert rows_of(answer) == rows_of(table.scan().to_arrow())
    assert answer.num_rows == 3


def test_an_older_snapshot_has_its_own_columns(session: Session, table: Any) -> None:
    first = table.history()[0].snapshot_id
    old = session.sql(f"select * from {LAKE}.orders version as of {first}", dialect="spark")
    assert old.to_pydict() == {"k": ["a", "b"], "v": [1, 2]}
    assert f"snapshot {first} of an Iceberg table, read by DataFusion" in old.explain_text()


def test_a_branch_is_left_to_spark(session: Session, table: Any) -> None:
    assert how(session, f"{LAKE}.branched") == "through Spark, because it is the branch audit of an Iceberg table"
    assert session.sql(f"select * from {LAKE}.branched").count() == 0
