"""Table objects and batches as DataFrames: they are read like tables with a name, and leave no name behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion import Session, UserError, col
from sparkfusion import functions as f

ROWS = {"k": [n % 3 for n in range(900)], "v": list(range(900))}
TOTALS = [{"k": k, "s": sum(range(k, 900, 3))} for k in range(3)]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    config = {
        "sparkfusion.bytes_per_partition": 1,
        "sparkfusion.memory_table_bytes": 1,
        "datafusion.execution.target_partitions": 3,
    }
    for number in range(3):
        pq.write_table(pa.table(ROWS).slice(number * 300, 300), tmp_path / f"{number}.parquet")
    with sparkfusion.connect(config=config) as session:
        session.register_parquet("files", tmp_path)
        session.from_arrow(pa.table(ROWS), name="rows")
        yield session


def names(session: Session) -> list[str]:
    found: list[str] = session.catalog().tables()["table_name"].to_pylist()
    return found


@pytest.mark.parametrize("name", ["files", "rows"])
def test_a_table_of_the_catalog_is_distributed(session: Session, name: str) -> None:
    read = session.read_table(session.catalog().schema().table(name))
    by_key = read.aggregate("k", [f.sum(col("v")).alias("s")]).sort("k")
    assert by_key.distribution().distributed
    assert by_key.to_pylist() == TOTALS
    assert names(session) == ["files", "rows"]


def test_views_dataframes_and_datasets_are_tables(session: Session, tmp_path: Path) -> None:
    some = session.table("files").filter("k = 1")
    for table in (some.into_view(), some):
        assert session.read_table(table).count() == 300
    assert session.read_table(ds.dataset(tmp_path)).count() == 900
    assert names(session) == ["files", "rows"]


def test_what_is_no_table_is_an_error(session: Session) -> None:
    with pytest.raises(UserError, match="cannot read a int as a table"):
        session.read_table(7)
    assert names(session) == ["files", "rows"]


def test_a_name_of_ours_is_not_in_errors(session: Session) -> None:
    with pytest.raises(UserError) as caught:
        session.read_table(session.catalog().schema().table("files")).select("nothing")
    assert "sparkfusion" not in caught.value.message


def test_batches_are_rows(session: Session) -> None:
    batches = pa.table(ROWS).to_batches(max_chunksize=100)
    by_key = session.read_batches(iter(batches)).aggregate("k", [f.sum(col("v")).alias("s")]).sort("k")
    assert by_key.to_pylist() == TOTALS
    assert session.read_batches([]).columns == []
    assert names(session) == ["files", "rows"]
    with pytest.raises(UserError, match="cannot read the batches") as caught:
        session.read_batches([batches[0], pa.record_batch({"other": [1]})])
    assert "one schema" in (caught.value.hint or "")


def test_a_view_replaces_a_table_that_it_reads(session: Session) -> None:
    session.table("rows").where("k = 1").createOrReplaceTempView("rows")
    assert session.table("rows").count() == 300
    session.table("rows").where("v > 100").createOrReplaceTempView("rows")
    assert session.sql("select count(*) as n from rows").to_pylist() == [{"n": 266}]
    with pytest.raises(UserError, match="failed to resolve schema: nowhere"):
        session.table("rows").createOrReplaceTempView("nowhere.rows")


def test_a_column_that_is_not_there_is_named(session: Session) -> None:
    with pytest.raises(UserError, match="nothing"):
        session.table("files").collect_column("nothing")
