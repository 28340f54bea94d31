"""Tasks on Spark run under the session's own settings."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import udf

from sparkfusion import Session
from sparkfusion.verify import assert_distributed_eq
from tests.behaviour.parts import DISTRIBUTED, PARTS, ROWS, write_parts
from tests.conftest import Connect


@pytest.fixture
def session(connect: Connect, tmp_path: Path) -> Session:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    return session


def test_the_batch_size_reaches_the_tasks(session: Session) -> None:
    def size(values: pa.Array) -> pa.Array:
        return pa.array([len(values)] * len(values), pa.int64())

    session.register_udf(udf(size, [pa.int64()], pa.int64(), "volatile", "size"))
    for batch_size in (50, 125):
        session.config["datafusion.execution.batch_size"] = batch_size
        with session.sql("select size(v) as n from t").stream() as rows:
            batches = list(rows)
        assert {batch["n"][0].as_py() for batch in batches} == {batch_size}
        assert {batch.num_rows for batch in batches} == {batch_size}
        assert len(batches) == PARTS * ROWS // batch_size


@pytest.mark.parametrize(("zone", "hours"), [("+02:00", -2), ("America/New_York", 5)])
def test_the_time_zone_reaches_the_tasks(session: Session, zone: str, hours: int) -> None:
    """Which instant a text without a zone means depends on the session's zone."""
    session.config["datafusion.execution.time_zone"] = zone
    midnight = "((2000 + 0 * k)::varchar || '-01-01T00:00:00')::timestamptz"
    sql = f"select date_part('epoch', {midnight}) as e, count(*) as n from t group by 1"
    assert session.sql(sql).to_pylist() == [{"e": 946684800.0 + hours * 3600, "n": PARTS * ROWS}]
    assert_distributed_eq(session, sql)


def test_jobs_say_whose_they_are(session: Session) -> None:
    def described(values: pa.Array) -> pa.Array:
        from pyspark import TaskContext

        context = TaskContext.get()
        text = context.getLocalProperty("spark.job.description") if context is not None else "no task"
        return pa.array([text] * len(values))

    session.register_udf(udf(described, [pa.int64()], pa.string(), "volatile", "described"))
    with session.sql("select described(v) as d from t").stream() as rows:
        found = {text for batch in rows for text in batch["d"].to_pylist()}
        assert found == {f"sparkfusion query {rows.id}, stage 1"}
