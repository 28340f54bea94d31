"""Sail: its server runs in this process, and PySpark's client asks it.

The process has an environment of its own (`sail_environment.py`), without sparkfusion.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.all.backends.base import Ask, Reply, Tables, in_spark_dialect


@contextmanager
def open_sail(tables: Tables, home: Path) -> Iterator[Mapping[str, Ask]]:
    with _server("local", tables) as ask:
        yield {"sail": ask}


@contextmanager
def open_sail_cluster(tables: Tables, home: Path) -> Iterator[Mapping[str, Ask]]:
    with _server("local-cluster", tables) as ask:
        yield {"sail-cluster": ask}


@contextmanager
def _server(mode: str, tables: Tables) -> Iterator[Ask]:
    os.environ["SAIL_MODE"] = mode
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    _, port = server.listening_address
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    try:
        for name, directory in tables.items():
            spark.read.parquet(str(directory)).createOrReplaceTempView(name)
        yield lambda sql: Reply(spark.sql(in_spark_dialect(sql)).toArrow())
    finally:
        spark.stop()
        server.stop()
