"""`sparkfusion bench` on Spark: Spark SQL takes turns too."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sparkfusion
from sparkfusion.bench import run_tpch
from sparkfusion.bench.bench_result import OURS, SINGLE_NODE, SPARK_SQL


@pytest.mark.long
def test_spark_sql_takes_turns_and_its_views_go_again(spark: SparkSession, tmp_path: Path) -> None:
    with sparkfusion.connect(spark, config={"sparkfusion.bytes_per_partition": 1}) as session:
        result = run_tpch(session, scale=0.001, queries="6,15", rounds=1, data=tmp_path)
        assert result.is_right, str(result)
        assert result.engines == (SINGLE_NODE, SPARK_SQL, OURS)
        assert result.place.startswith("on Spark local[2,4]")
        ratio = result.compare_with(SPARK_SQL)
        assert ratio is not None
        assert ratio.queries == 2
        assert all(query.turns[SPARK_SQL].equal for query in result.queries)
        assert "lineitem" not in [table.name for table in spark.catalog.listTables()]


@pytest.mark.long
def test_views_of_the_user_are_not_replaced(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).createOrReplaceTempView("orders")
    try:
        with (
            sparkfusion.connect(spark) as session,
            pytest.raises(sparkfusion.UserError, match=r"cannot read the tables orders: .* temporary views"),
        ):
            run_tpch(session, scale=0.001, queries="6", rounds=1, data=tmp_path)
        assert spark.table("orders").count() == 3
    finally:
        spark.catalog.dropTempView("orders")
