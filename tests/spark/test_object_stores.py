"""Object stores in Spark's tasks: made there, by the function that was registered here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from datafusion import SessionContext
from pyspark.sql import SparkSession

from sparkfusion.session.object_stores import ObjectStores
from tests.suites.fake_s3 import fake_s3


def test_a_recipe_makes_the_store_in_a_worker(spark: SparkSession) -> None:
    with fake_s3() as server:
        server.put_table("t/0.parquet", pa.table({"v": [1, 2, 3]}))
        stores = ObjectStores()
        stores.add(SessionContext(), "s3://", server.store_maker(), "bucket")
        recipe = stores.recipe([])
        assert recipe is not None

        def read(numbers: Iterable[int]) -> Iterator[Any]:
            for _ in numbers:
                context = SessionContext()
                recipe(context)
                context.register_parquet("t", "s3://bucket/t/")
                yield context.sql("select sum(v) as s from t").to_pylist()

        assert spark.sparkContext.parallelize(range(4), 2).mapPartitions(read).collect() == [[{"s": 6}]] * 4
