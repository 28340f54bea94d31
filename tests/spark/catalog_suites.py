"""TPC-H and TPC-DS by names of Spark's catalog: read by DataFusion or through Spark, with the single-node answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from datafusion import SessionContext

from sparkfusion import Session
from sparkfusion.bench.tpc import Suite
from sparkfusion.verify import compare_tables
from tests.conftest import Connect
from tests.spark.catalog_rows import database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAYS = {"auto": "read by DataFusion", "spark": "through Spark"}
"""Values of `sparkfusion.spark_catalog`, and what `explain` then says of each table."""

SCALE = 0.01


@dataclass(frozen=True)
class CatalogSuite:
    """A suite whose tables are in Spark's current database. `way` is one of `WAYS`."""

    suite: Suite
    session: Session
    single_node: SessionContext
    way: str

    def check(self, number: int) -> None:
        text = self.suite.queries()[number]
        query = self.session.sql(text)
        shown = [line for line in query.explain_text().splitlines() if line.startswith("table ")]
        assert shown
        assert all(WAYS[self.way] in line for line in shown), shown
        answer = query.collect()
        expected = self.single_node.sql(text).to_arrow_table().cast(answer.schema)  # texts are views there
        assert compare_tables(expected, answer).equal


@contextmanager
def suite_in_catalog(
    suite: Suite, way: str, spark: SparkSession, directory: Path, connect: Connect, settings: Mapping[str, object]
) -> Iterator[CatalogSuite]:
    """The suite's tables in a database of their own, with its files below a directory. They are made once."""
    files = directory / suite.name
    if not files.exists():
        suite.generate(files, SCALE, files=2)
    single_node = SessionContext()
    suite.register(single_node, files)
    with database(spark, f"sf_{suite.name}", directory / "home") as name:
        for table in suite.tables(files):
            spark.sql(f"create table {name}.{table} using parquet location '{files / table}'")
        spark.sql(f"use {name}")
        yield CatalogSuite(suite, connect({**settings, "sparkfusion.spark_catalog": way}), single_node, way)
