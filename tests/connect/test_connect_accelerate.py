"""`accelerate` on Spark Connect, which does not show plans: texts, and DataFrames that came from a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import sparkfusion
from tests.behaviour.parts import DISTRIBUTED
from tests.runners import ALL_ON_SPARK, SPLIT

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = pytest.mark.long  # it starts a server with a JVM of its own

CONFIG = {**DISTRIBUTED, **SPLIT, **ALL_ON_SPARK}
TEXT = "select shop, count(*) as n, sum(id) from connect_sales group by shop order by shop"


@pytest.mark.long
def test_a_text_and_its_dataframe_have_sparks_answer(remote_spark: SparkSession) -> None:
    spark: Any = remote_spark
    spark.range(100).selectExpr("id", "id % 3 as shop").createOrReplaceTempView("connect_sales")
    for query in (TEXT, spark.sql(TEXT)):
        with sparkfusion.accelerate(query, spark=spark, config=CONFIG) as found:
            assert found.answered, found.reason
            assert found.df.schema == spark.sql(TEXT).schema
            assert found.compare().equal
    with sparkfusion.accelerate(spark.sql(TEXT).where("n > 1"), config=CONFIG) as refused:
        assert "Spark Connect does not show the plan" in (refused.reason or "")
        assert refused.df.count() == 3
    spark.catalog.dropTempView("connect_sales")
