"""Tasks are Spark's own: its Python workers run them, and its jobs say whose they are."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import udf

from sparkfusion import Session
from tests.behaviour.parts import DISTRIBUTED, write_parts
from tests.conftest import Connect


@pytest.fixture
def session(connect: Connect, tmp_path: Path) -> Session:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    return session


def test_functions_run_in_spark_workers(session: Session) -> None:
    def worker(values: pa.Array) -> pa.Array:
        from pyspark import TaskContext

        inside = TaskContext.get() is not None
        return pa.array([os.getpid() if inside else 0] * len(values), pa.int64())

    session.register_udf(udf(worker, [pa.int64()], pa.int64(), "volatile", "worker"))
    found = session.sql("select worker(v) as w from t").collect()["w"].unique().to_pylist()
    assert os.getpid() not in found
    assert 0 not in found


def test_jobs_say_whose_they_are(session: Session) -> None:
    def described(values: pa.Array) -> pa.Array:
        from pyspark import TaskContext

        context = TaskContext.get()
        text = context.getLocalProperty("spark.job.description") if context is not None else "no task"
        return pa.array([text] * len(values))

    session.register_udf(udf(described, [pa.int64()], pa.string(), "volatile", "described"))
    sql = "select described(v) as d from t"
    with session.sql(sql).stream() as rows:
        found = {text for batch in rows for text in batch["d"].to_pylist()}
        assert found == {f"sparkfusion query {rows.id}, stage 1 of 1 (scan parts/0.parquet and 3 more): {sql}"}
