"""Maps: their types hold names that pyarrow, which writes the frames, forgets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import Session
from sparkfusion.verify import assert_distributed_eq
from tests.behaviour.traps.conftest import PARTITIONED_JOINS
from tests.conftest import Connect

ROWS = [[("a", 1)], [("a", 1)], [], None, [("b", None), ("c", 3)], [("a", 1)]]
QUERIES = {
    "group by": "select m, count(*) as n from t group by m",
    "in a list": "select [m] as m, count(*) as n from t group by [m]",
    "in a struct": "select named_struct('m', m) as m, count(*) as n from t group by 1",
    "first value": "select id % 2 as k, first_value(m order by id) as m from t group by 1",
    "union": "select m from t union select map(['z'], [cast(3 as bigint)])",
    "two of a name": "select a.m, b.m from t a join (select m, max(id) as id from t group by m) b on a.id = b.id",
    "both sides": (
        "select coalesce(a.m, b.m) as m, count(*) as n from t a "
        "full join (select m, max(id) as id from t group by m) b on a.id = b.id group by 1"
    ),
}


@pytest.fixture(scope="module")
def session(connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """`t` is in Parquet files, whose maps have entries of another name; `named` is in memory, with names of its own."""
    forced = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": 2}
    session = connect_shared(forced | PARTITIONED_JOINS)
    directory = tmp_path_factory.mktemp("maps")
    for part in range(2):
        _write(directory / f"{part}.parquet", pa.map_(pa.string(), pa.int64()), part)
    session.register_parquet("t", directory)
    own = pa.map_(pa.field("k", pa.string(), nullable=False), pa.field("v", pa.int64()))
    session.register_record_batches("named", [[pa.record_batch({"id": range(6), "m": pa.array(ROWS, own)})]] * 2)
    return session


def _write(path: Path, kind: pa.DataType, part: int) -> None:
    pq.write_table(pa.table({"id": range(part * 3, part * 3 + 3), "m": pa.array(ROWS[part * 3 :][:3], kind)}), path)


@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES)
def test_map_columns_cross_exchanges(session: Session, sql: str) -> None:
    assert_distributed_eq(session, sql)


def test_names_inside_a_map_cross_exchanges(session: Session) -> None:
    assert_distributed_eq(session, "select m, count(*) as n, arrow_typeof(m) as t from named group by m")


def test_map_columns_of_memory_tables_written_to_files(session: Session) -> None:
    session.sql("create table kept as select id, m, [m] as l from t")
    session.config["sparkfusion.memory_table_bytes"] = 1
    assert_distributed_eq(session, "select m, l, count(*) as n from kept group by m, l")


def test_a_map_with_metadata_inside_runs_on_a_single_node(session: Session, tmp_path: Path) -> None:
    """Names come back by way of DataFusion's words for a type, which it does not read with metadata in them."""
    inner = pa.struct([pa.field("x", pa.int64(), metadata={"PARQUET:field_id": "4"})])
    for part in range(2):
        rows = pa.array([[("a", {"x": part})]] * 3, pa.map_(pa.string(), inner))
        pq.write_table(pa.table({"m": rows}), tmp_path / f"{part}.parquet")
    session.register_parquet("ids", tmp_path)
    frame = session.sql("select m, count(*) as n from ids group by m order by n, m['a']['x']")
    assert "metadata" in str(frame.distribution().reason)
    assert frame.to_pydict()["n"] == [3, 3]
