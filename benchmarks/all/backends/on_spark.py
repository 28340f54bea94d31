"""What runs on Spark: sparkfusion and Spark SQL, in local mode and on two executors of one core each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sparkfusion
from benchmarks.all.backends.base import Ask, Reply, Tables, in_spark_dialect
from benchmarks.all.backends.ours import ask
from benchmarks.spark_start import start_spark
from sparkfusion.config import available_cores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TUNED = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": str(8 * available_cores()),
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.autoBroadcastJoinThreshold": "64m",
}
"""What someone would set on one small machine. The defaults are 200 shuffle partitions and broadcasts up to 10 MB."""

QUICK_WORKERS = {"spark.python.daemon.module": "sparkfusion.runner.spark.daemon"}
"""As docs/deploy.md advises. Spark ends idle Python workers after a minute, and the engines take turns."""
DRIVER_MEMORY, EXECUTOR_MEMORY = "2g", "2g"


@contextmanager
def open_spark(tables: Tables, home: Path) -> Iterator[Mapping[str, Ask]]:
    with ExitStack() as stack:
        spark = start_spark({"spark.local.dir": str(home / "local")})
        stack.callback(spark.stop)
        files, shuffle = (
            stack.enter_context(sparkfusion.connect(spark, config={"sparkfusion.store": store}))
            for store in ("local", "spark")
        )
        yield {
            "spark-files": ask(files, tables),
            "spark-shuffle": ask(shuffle, tables),
            "spark-sql": ask_spark(spark, {}, tables),
            "spark-sql-tuned": ask_spark(spark, TUNED, tables),
        }


@contextmanager
def open_executors(tables: Tables, home: Path) -> Iterator[Mapping[str, Ask]]:
    from tests.cluster.standalone import Size, start_cluster

    size = Size(DRIVER_MEMORY, EXECUTOR_MEMORY, java="", settings=QUICK_WORKERS)
    with start_cluster(home, size) as spark, sparkfusion.connect(spark) as session:
        yield {"executors": ask(session, tables), "spark-sql-executors": ask_spark(spark, TUNED, tables)}


def ask_spark(spark: SparkSession, settings: Mapping[str, str], tables: Tables) -> Ask:
    """Spark SQL in a session of its own of the same Spark context, because its settings differ."""
    session: Any = spark.newSession()
    for name, value in settings.items():
        session.conf.set(name, value)
    for name, directory in tables.items():
        session.read.parquet(str(directory)).createOrReplaceTempView(name)
    return lambda sql: Reply(session.sql(in_spark_dialect(sql)).toArrow())
