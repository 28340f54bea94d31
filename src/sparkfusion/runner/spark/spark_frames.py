"""What only a runner on Spark can do: Spark DataFrames as tables of queries, and results as Spark DataFrames."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.spark.casts import for_spark
from sparkfusion.runner.spark.environment import check_executors
from sparkfusion.runner.spark.lineage import lineage
from sparkfusion.runner.spark.spark_tables import SparkTables
from sparkfusion.runner.spark.spark_types import spark_arrow_schema, spark_schema


class DataFrames(SparkTables):
    """DataFrames of a user's Spark session."""

    def to_spark(self, job: QueryJob, schema: pa.Schema) -> DataFrame:
        """A DataFrame that Spark computes when it is asked for its rows."""
        check_executors(self._session.sparkContext)
        return lineage(job, self._session, self, schema)

    def from_rows(self, rows: pa.Table) -> DataFrame:
        """A DataFrame of rows that are here."""
        target = spark_arrow_schema(rows.schema)
        batches = [for_spark(batch, target) for batch in rows.to_batches()]
        return self._session.createDataFrame(pa.Table.from_batches(batches, target), spark_schema(rows.schema))
