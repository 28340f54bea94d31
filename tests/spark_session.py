"""One Spark session for a whole run, stopped with its JVM."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import leaks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2,4]"
"""Two cores, four attempts at a task."""

FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The JVM's cheap compiler, because it lives for minutes."""

ROOT = Path(__file__).parents[1]
DAEMON = "sparkfusion.runner.spark.daemon"
LOOKUP = "-m pyspark.daemon pyspark.sql.worker.lookup_data_sources"
"""Spark looks for Python data sources in a process of its own, when a statement names a format."""


@contextmanager
def spark_session(scratch: Path) -> Iterator[SparkSession]:
    """A session until the `with` ends.

    The check for leftovers stays on meanwhile, with one allowance: processes of Spark's own Python daemons may come and
    go, because Spark decides how many it keeps.
    """
    from sparkfusion.runner.spark.java import ensure_java

    ensure_java(Path(tempfile.gettempdir()))  # it stays until this process ends
    before = leaks.take()
    session = _start(scratch)
    try:
        with leaks.known_processes(f"-m {DAEMON} pyspark.worker", LOOKUP):
            yield session
    finally:
        session.stop()
        end_jvm()
    left = leaks.since(before)
    assert not left, f"Spark left behind: {'; '.join(left)}"


def scratch_of(session: SparkSession) -> Path:
    """Where Spark has its files."""
    return Path(session.sparkContext.getConf().get("spark.local.dir") or tempfile.gettempdir())


def _start(scratch: Path) -> SparkSession:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's, about the pandas that is installed
        from sparkfusion.runner.spark.launch import start_local

        settings = {
            "spark.driver.extraJavaOptions": FAST_START,
            "spark.driver.memory": "512m",
            "spark.local.dir": str(scratch),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.python.task.killTimeout": "100ms",  # tests cancel a lot; Spark waits two seconds
            "spark.executorEnv.PYTHONPATH": str(ROOT),  # functions of tests travel by the name of their module
        }
        return start_local(MASTER, settings)


def end_jvm() -> None:
    """`stop` ends the Spark context; the JVM would stay until Python exits."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
    SparkContext._gateway = SparkContext._jvm = None
