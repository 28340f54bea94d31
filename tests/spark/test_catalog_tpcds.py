"""TPC-DS by names of Spark's catalog: read by DataFusion and through Spark, queries give the single-node answer.

Every ninth query is read by DataFusion. A few come through Spark, which takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from sparkfusion import UserError
from sparkfusion.bench.tpc import TPCDS
from tests.conftest import Connect
from tests.spark.catalog_suites import CatalogSuite, suite_in_catalog

pytestmark = pytest.mark.long

BY_DATAFUSION = range(1, TPCDS.query_count + 1, 9)
THROUGH_SPARK = (1, 22, 38, 51, 97)
NOT_DISTRIBUTED = {6: "a scalar subquery may return several rows", 64: "the plan is nested too deep"}
"""Queries that only a single node runs, which cannot read rows of Spark."""


@pytest.fixture(scope="module")
def tpcds(
    request: pytest.FixtureRequest,
    connect_shared: Connect,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[CatalogSuite]:
    directory = tmp_path_factory.getbasetemp() / "tpcds-of-catalog"
    with suite_in_catalog(TPCDS, request.param, spark, directory, connect_shared, {}) as made:
        yield made


@pytest.mark.parametrize("tpcds", ["auto"], indirect=True)
@pytest.mark.parametrize("number", BY_DATAFUSION)
def test_query_gives_its_single_node_answer(tpcds: CatalogSuite, number: int) -> None:
    tpcds.check(number)


@pytest.mark.parametrize("tpcds", ["spark"], indirect=True)
@pytest.mark.parametrize("number", THROUGH_SPARK)
def test_query_gives_its_single_node_answer_through_spark(tpcds: CatalogSuite, number: int) -> None:
    tpcds.check(number)


@pytest.mark.parametrize("tpcds", ["spark"], indirect=True)
@pytest.mark.parametrize("number", NOT_DISTRIBUTED)
def test_query_of_a_single_node_refuses_rows_of_spark(tpcds: CatalogSuite, number: int) -> None:
    with pytest.raises(UserError, match=r"from Spark, but cannot be distributed") as raised:
        tpcds.session.sql(TPCDS.queries()[number]).collect()
    assert NOT_DISTRIBUTED[number] in str(raised.value)
