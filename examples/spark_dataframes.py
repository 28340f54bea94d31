"""On Spark: a Spark DataFrame is a table of the query, and the result is a Spark DataFrame again."""

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, count
from pyspark.sql.functions import sum as sum_of

import sparkfusion


def main() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors need this Python and its packages
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        visits = spark.range(200_000).select((col("id") % 1000).alias("user"), (col("id") % 7).alias("day"))
        with sparkfusion.connect(spark) as session:
            session.register_spark("visits", visits)
            active = session.sql("select user, count(*) as n from visits where day < 5 group by user")
            result = active.to_spark()  # a DataFrame like any other; Spark runs our tasks when it is used
            result.groupBy().agg(count("*").alias("users"), sum_of("n").alias("visits")).show()
            print("schema:", result.schema.simpleString())
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
