"""TPC-H by names of Spark's catalog: read by DataFusion and through Spark, queries give the single-node answer.

Half of the queries are read by DataFusion. A few also come through Spark, which takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkfusion.bench.tpc import TPCH
from tests.conftest import Connect
from tests.spark.catalog_suites import WAYS, CatalogSuite, suite_in_catalog

SAMPLE = {"auto": 3, "spark": 18}
NUMBERS = range(1, TPCH.query_count + 1)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tpch")


@pytest.fixture(scope="module")
def tpch(
    request: pytest.FixtureRequest, connect_shared: Connect, spark: SparkSession, directory: Path
) -> Iterator[CatalogSuite]:
    settings = {"sparkfusion.bytes_per_partition": 1}
    with suite_in_catalog(TPCH, request.param, spark, directory, connect_shared, settings) as made:
        yield made


@pytest.mark.parametrize(
    ("tpch", "number"),
    [
        pytest.param(way, number, marks=() if way == "auto" and number == SAMPLE[way] else pytest.mark.long)
        for way in WAYS
        for number in NUMBERS
        if number in SAMPLE.values() or number % {"auto": 2, "spark": 6}[way] == 0
    ],
    indirect=["tpch"],
)
def test_query_gives_its_single_node_answer(tpch: CatalogSuite, number: int) -> None:
    tpch.check(number)
