"""Rows in memory: their size is told without a copy, and queries that read them where they are never encode them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion import Session
from sparkfusion.session.dataframe import look_inside
from sparkfusion.session.memory_rows import leaves, memory_bytes

ROWS = 300_000
BYTES = 8 * ROWS
SUM = "select k % 3 as k, sum(k) as s from t group by k % 3"


def _numbers(rows: int = ROWS) -> pa.Table:
    return pa.table({"k": pa.array(range(rows), pa.int64())})


def _from_arrow(session: Session) -> None:
    session.from_arrow(_numbers(), "t")


def _create_table_as(session: Session) -> None:
    session.from_arrow(_numbers(), "source")
    session.sql("create table t as select * from source").collect()


def _insert(session: Session) -> None:
    session.from_arrow(_numbers(), "source")
    session.sql("create table t (k bigint)").collect()
    session.sql("insert into t select * from source").collect()


def _batches(session: Session) -> None:
    session.register_record_batches("t", [[batch] for batch in _numbers().to_batches(max_chunksize=ROWS // 3)])


def _view(session: Session) -> None:
    _from_arrow(session)
    session.register_view("v", session.table("t"))
    session.deregister_table("t")
    session.sql("create view t as select * from v").collect()


def _cached(session: Session) -> None:
    session.from_arrow(_numbers(), "source")
    session.register_view("t", session.table("source").cache())


@pytest.fixture
def session() -> Iterator[Session]:
    with sparkfusion.connect() as session:
        yield session


@pytest.mark.parametrize("make", [_from_arrow, _create_table_as, _insert, _batches, _view, _cached])
def test_the_size_of_a_memory_table_is_known(session: Session, make: Callable[[Session], None]) -> None:
    make(session)
    sizes = [memory_bytes(leaf) for leaf in leaves(session.table("t").to_datafusion().execution_plan())]
    assert None not in sizes
    assert BYTES <= sum(size for size in sizes if size is not None) <= 2 * BYTES


@pytest.mark.parametrize("make", [_from_arrow, _create_table_as, _insert, _batches, _view, _cached])
def test_a_query_on_a_single_node_does_not_encode_rows(session: Session, make: Callable[[Session], None]) -> None:
    make(session)
    engine, query = look_inside(session.sql(SUM))
    planned = engine.plan(query)
    assert planned.distribution.reason is not None
    assert planned.distribution.reason.startswith("it reads ")
    assert planned.plan is None
    assert sum(session.sql(SUM).to_pydict()["s"]) == ROWS * (ROWS - 1) // 2


def test_rows_of_a_cached_frame_are_not_encoded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    _cached(session)
    session.config["sparkfusion.bytes_per_partition"] = BYTES // 8 // 2
    session.config["datafusion.execution.target_partitions"] = 8
    encoded: list[int] = []
    original = datafusion.plan.ExecutionPlan.to_bytes

    def count(plan: datafusion.plan.ExecutionPlan, context: object = None) -> bytes:
        made = original(plan, context)  # type: ignore[arg-type]
        encoded.append(len(made))
        return made

    monkeypatch.setattr(datafusion.plan.ExecutionPlan, "to_bytes", count)
    assert session.sql(SUM).distribution().distributed
    assert encoded
    assert max(encoded) < BYTES


def test_other_scans_are_not_rows_in_memory(session: Session, tmp_path: Path) -> None:
    pq.write_table(_numbers(10), tmp_path / "t.parquet")
    session.register_parquet("t", tmp_path / "t.parquet")
    for sql in ("select k from t", "select 1 as k", "select value from generate_series(1, 10)"):
        assert [memory_bytes(leaf) for leaf in leaves(session.sql(sql).to_datafusion().execution_plan())] == [None]


def test_files_beside_rows_in_memory_count(session: Session, tmp_path: Path) -> None:
    _batches(session)
    pq.write_table(_numbers(10), tmp_path / "files.parquet")
    session.register_parquet("files", tmp_path / "files.parquet")
    session.config["datafusion.execution.target_partitions"] = 2
    session.config["sparkfusion.bytes_per_partition"] = BYTES // 8 + 10
    frame = session.sql("select count(*) as n from t join files on t.k = files.k")
    assert frame.distribution().distributed
    assert frame.to_pydict() == {"n": [10]}
