"""TPC-H by names of Spark's catalog: read by DataFusion and through Spark, queries give the single-node answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from datafusion import SessionContext
from pyspark.sql import SparkSession

from benchmarks.tpc import TPCH
from sparkfusion import Session
from sparkfusion.verify import compare_tables
from tests.conftest import Connect
from tests.spark.catalog_rows import database

SCALE = 0.01
SAMPLE = (3, 18)
NUMBERS = [
    pytest.param(number, marks=() if number in SAMPLE else pytest.mark.long)
    for number in range(1, TPCH.query_count + 1)
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tpch")
    TPCH.generate(directory, SCALE, files=2)
    return directory


@pytest.fixture(scope="module")
def single_node(files: Path) -> SessionContext:
    context = SessionContext()
    TPCH.register(context, files)
    return context


@pytest.fixture(scope="module", params=["auto", "spark"])
def session(
    request: pytest.FixtureRequest,
    connect_shared: Connect,
    spark: SparkSession,
    files: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Session]:
    with database(spark, "sf_tpch", tmp_path_factory.mktemp("home")) as name:
        for table in TPCH.tables(files):
            spark.sql(f"create table {name}.{table} using parquet location '{files / table}'")
        spark.sql(f"use {name}")
        yield connect_shared({"sparkfusion.bytes_per_partition": 1, "sparkfusion.spark_catalog": request.param})


@pytest.mark.parametrize("number", NUMBERS)
def test_query_gives_its_single_node_answer(session: Session, single_node: SessionContext, number: int) -> None:
    text = TPCH.queries()[number]
    query = session.sql(text)
    shown = [line for line in query.explain_text().splitlines() if line.startswith("table ")]
    way = "read by DataFusion" if session.config["sparkfusion.spark_catalog"] == "auto" else "through Spark"
    assert shown
    assert all(way in line for line in shown), shown
    answer = query.collect()
    expected = single_node.sql(text).to_arrow_table().cast(answer.schema)  # texts are views there
    assert compare_tables(expected, answer).equal
