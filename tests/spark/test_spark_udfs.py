"""Python functions of Spark, called by sparkfusion's tasks: the same values as in Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.pandas import functions as of_batches

from sparkfusion import Session, UserError
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, write_parts
from tests.conftest import Connect

BATCHES: Any = of_batches  # its types do not know functions without hints


@pytest.fixture
def session(connect: Connect, tmp_path: Path) -> Session:
    opened = connect(DISTRIBUTED)
    opened.register_parquet("t", str(write_parts(tmp_path)))
    return opened


def label(n: int, text: str) -> str | None:
    return None if n == 3 else f"{text}{n}"


def mean(values: pd.Series) -> float:
    return float(values.mean())


def test_registered_function_gives_sparks_values(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    registered = spark.udf.register("label", label, "string")
    spark.read.parquet(str(tmp_path / "parts")).createOrReplaceTempView("t_udf")
    session.register_spark_udf("label", registered)
    theirs = spark.sql("select label(k, 'x') as l, count(*) as n from t_udf group by 1").toArrow()
    expected = sorted(theirs.to_pylist(), key=str)
    for dialect in ("datafusion", "spark"):
        frame = session.sql("select label(k, 'x') as l, count(*) as n from t group by 1", dialect=dialect)
        assert sorted(assert_distributed_like_single_node(frame).to_pylist(), key=str) == expected
    spark.catalog.dropTempView("t_udf")


def test_functions_of_batches(session: Session, spark: SparkSession) -> None:
    plus = BATCHES.pandas_udf(lambda v: v + 1, "bigint")
    twice = BATCHES.arrow_udf(lambda v: pc.multiply(v, 2), "bigint")
    session.register_spark_udf("plus", plus, [pa.int64()])
    session.register_spark_udf("twice", twice, [pa.int64()])
    frame = session.sql("select sum(plus(v)) as p, sum(twice(v)) as d, sum(v) as s, count(*) as n from t")
    (row,) = assert_distributed_like_single_node(frame).to_pylist()
    assert row["p"] == row["s"] + row["n"]
    assert row["d"] == row["s"] * 2


def test_what_cannot_be_called_is_refused(session: Session, spark: SparkSession) -> None:
    untyped = udf(lambda v: v, "bigint")
    for function, types, words in (
        (label, None, "is not a function of Spark"),
        (untyped, None, "the types of its arguments are not known"),
        (untyped, [pa.timestamp("us")], "in another form"),
        (BATCHES.pandas_udf(mean, "double"), [pa.int64()], "one value for each"),
    ):
        with pytest.raises(UserError, match=words):
            session.register_spark_udf("f", function, types)
