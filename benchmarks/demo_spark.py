"""A tour for people with Spark: tables of its catalog, DataFrames in and out, a Spark query made faster, Spark Connect.

make demo-spark
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sparkfusion
from sparkfusion.bench.tpc import TPCH
from sparkfusion.verify import compare_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALE = 0.1
TABLES = ("lineitem", "nation", "orders")
BY_PRIORITY = """
    select o_orderpriority, count(*) as n, sum(l_extendedprice) as price
    from shop.orders join shop.lineitem on o_orderkey = l_orderkey
    where l_shipdate > date '1995-01-01' group by o_orderpriority
"""
SETTINGS = {"sparkfusion.bytes_per_partition": "1MiB"}  # the data is small: make it worth several tasks


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sparkfusion-demo-") as directory:
        print(f"Generating TPC-H at scale {SCALE}, starting Spark …", flush=True)
        home = Path(directory)
        (home / "files").mkdir()
        TPCH.generate(home / "files", SCALE)
        port = free_port()
        spark = start_spark(home, port)
        try:
            create_tables(spark, home)
            with sparkfusion.connect(spark, config=SETTINGS) as session:
                show_catalog(session, spark)
                show_dataframes(session, spark)
            show_acceleration(spark)
            show_connect(f"sc://127.0.0.1:{port}")
        finally:
            spark.stop()


def start_spark(home: Path, port: int) -> SparkSession:
    """A local Spark that is a Spark Connect server too, so that the tour needs one JVM only."""
    from sparkfusion.runner.spark.launch import MASTER, start_local

    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dderby.system.home={home}",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home),
    }
    return start_local(MASTER, settings)


def create_tables(spark: SparkSession, home: Path) -> None:
    spark.sql("create database shop")
    for table in TABLES:
        spark.sql(f"create table shop.{table} using parquet location '{home / 'files' / table}'")


def show_catalog(session: sparkfusion.Session, spark: SparkSession) -> None:
    title("tables of Spark's catalog, by name")
    query = session.sql(BY_PRIORITY)
    query.show()
    print("\n".join(line for line in query.explain_text().splitlines() if line.startswith(("distributed", "table"))))
    query.write_spark_table("shop.by_priority")
    print(f"\nwritten to shop.by_priority: Spark reads {spark.table('shop.by_priority').count()} rows")


def show_dataframes(session: sparkfusion.Session, spark: SparkSession) -> None:
    title("a Spark DataFrame in, a Spark DataFrame out")
    session.register_spark(
        "events", spark.range(0, 500_000, 1, 4).selectExpr("id % 25 as nation", "id % 100 as amount")
    )
    answer = session.sql(
        "select n_name, count(*) as events, sum(amount) as amount from events join shop.nation on nation = n_nationkey "
        "group by n_name"
    ).to_spark()
    answer.orderBy("n_name").show(3)


def show_acceleration(spark: SparkSession) -> None:
    title("sparkfusion.accelerate: a query of Spark, answered here")
    from pyspark.sql import functions

    lines, orders = spark.table("shop.lineitem"), spark.table("shop.orders")
    query = (
        lines.join(orders, lines.l_orderkey == orders.o_orderkey)
        .where("l_shipdate > date '1995-01-01'")
        .groupBy("o_orderpriority")
        .agg(functions.count("*").alias("n"), functions.sum("l_extendedprice").alias("price"))
        .orderBy("o_orderpriority")
    )
    with sparkfusion.accelerate(query) as found:
        print(f"answered: {found.answered}\nhow: {found.how}")
        print(f"same schema: {found.df.schema == query.schema}, same rows: {found.compare().equal}")
        print(found.measure())
        print()
        print("\n".join(found.explain_text(width=max(140, shutil.get_terminal_size().columns)).splitlines()[:16]))
        print("…")
    with sparkfusion.accelerate(query.rollup("o_orderpriority").count()) as refused:
        print(f"\nanswered: {refused.answered}\nwhy: {refused.reason}")


def show_connect(url: str) -> None:
    title("the same through Spark Connect")
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    remote: Any = ConnectSession.Builder().remote(url).create()
    try:
        with sparkfusion.connect(remote, config=SETTINGS) as session:
            query = session.sql(BY_PRIORITY)
            print(query.explain_text().splitlines()[0])
            started = time.perf_counter()
            answer = query.to_spark()
            print(f"{answer.count()} rows after {time.perf_counter() - started:.1f} s")
            same = compare_tables(remote.sql(BY_PRIORITY).toArrow(), answer.toArrow()).equal
            print(f"same answer as Spark's: {same}")
    finally:
        remote.stop()


def title(text: str) -> None:
    print(f"\n━━ {text} ━━\n", flush=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
