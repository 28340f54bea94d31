"""Frames in an object store: a whole query through it, and nothing left there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import SparkfusionError, UserError
from sparkfusion.verify import assert_distributed_eq
from tests.conftest import Connect
from tests.suites.fake_s3 import SECRET, FakeS3, fake_s3

DISTRIBUTED = {"sparkfusion.bytes_per_partition": 1}
QUERY = """
    select a.k, count(*) as c, sum(b.v) as s, min(b.name) as first
    from t a join t b on a.v = b.v + 1 group by a.k order by a.k
"""


@pytest.fixture
def s3() -> Iterator[FakeS3]:
    with fake_s3() as server:
        yield server


@pytest.fixture
def parts(tmp_path: Path) -> str:
    for number in range(3):
        values = range(number, 600, 3)
        columns = {"k": [v % 7 for v in values], "v": list(values), "name": [f"name {v % 11}" for v in values]}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    return str(tmp_path)


@pytest.mark.parametrize("query", [QUERY, "select k, v from t where v % 5 = 0", "select v from t order by v limit 7"])
def test_the_answer_is_the_single_node_answer(connect: Connect, s3: FakeS3, parts: str, query: str) -> None:
    session = connect(DISTRIBUTED | {"sparkfusion.store_dir": s3.url("frames")})
    session.register_parquet("t", parts)
    assert_distributed_eq(session, query)
    assert [name for name in s3.names() if not name.endswith("/")] == []


def test_explain_names_the_store_without_its_secrets(connect: Connect, s3: FakeS3, parts: str) -> None:
    session = connect(DISTRIBUTED | {"sparkfusion.store_dir": s3.url("frames")})
    session.register_parquet("t", parts)
    text = session.sql(QUERY).explain_text()
    assert "frames in s3://bucket/frames" in text.splitlines()[0]
    assert "shared by all executors" in text
    assert SECRET not in text


def test_a_store_that_refuses_is_a_clear_error_at_the_first_query(connect: Connect, s3: FakeS3, parts: str) -> None:
    session = connect(DISTRIBUTED | {"sparkfusion.store_dir": s3.url("frames", secret="wrong")})
    session.register_parquet("t", parts)
    with pytest.raises(SparkfusionError, match="s3://bucket/frames") as caught:
        session.sql(QUERY).collect()
    assert "wrong" not in str(caught.value)


def test_a_cancelled_query_leaves_nothing_in_the_store(connect: Connect, s3: FakeS3, parts: str) -> None:
    session = connect(DISTRIBUTED | {"sparkfusion.store_dir": s3.url("frames")})
    session.register_parquet("t", parts)
    running = session.sql("select k, v from t").stream()
    assert next(running).num_rows
    running.close()
    assert [name for name in s3.names() if not name.endswith("/")] == []


def test_tables_of_an_object_store_are_read_by_the_tasks(connect: Connect, s3: FakeS3) -> None:
    for number in range(3):
        s3.put_table(f"t/{number}.parquet", pa.table({"k": [1, 2, number], "v": [number, 1, 1]}))
    session = connect(DISTRIBUTED)
    session.register_object_store("s3://", s3.store_maker(), "bucket")
    session.register_parquet("t", "s3://bucket/t/")
    assert_distributed_eq(session, "select k, sum(v) as s, count(*) as c from t group by k")


def test_a_live_store_cannot_reach_the_executors(connect: Connect, s3: FakeS3) -> None:
    s3.put_table("t/0.parquet", pa.table({"k": [1, 2], "v": [1, 1]}))
    s3.put_table("t/1.parquet", pa.table({"k": [1, 2], "v": [1, 1]}))
    session = connect(DISTRIBUTED)
    session.register_object_store("s3://", s3.store_maker()(), "bucket")
    session.register_parquet("t", "s3://bucket/t/")
    with pytest.raises(UserError, match="executors cannot read s3://bucket") as caught:
        session.sql("select k, sum(v) from t group by k").collect()
    assert "pass a function that creates it" in str(caught.value)
