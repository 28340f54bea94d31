"""A good local Spark session for `connect("spark")`."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkfusion.runner.spark.java import ensure_java

MASTER = "local[*,4]"
"""All cores, and four attempts at a task, as on a cluster: a local master tries once by default."""

LOCAL_SPARK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.unix.domain.socket.enabled": "true",
}
_IMPORTED_BEFORE = {"spark.python.daemon.module": "sparkfusion.runner.spark.daemon"}
"""Only for workers of this Python: another one may have no sparkfusion, and would get it when workers run."""


def local_session() -> tuple[SparkSession, bool]:
    """The session of this process if there is one, otherwise a new local one; and whether we have to stop it."""
    if SparkContext._active_spark_context is not None:  # an active *session* is known to the thread that made it only
        return SparkSession.builder.getOrCreate(), False
    return start_local(), True


def session_at(master: str) -> SparkSession:
    """A session on a master of Spark, or on a Spark Connect server (`sc://…`), with the user's own configuration."""
    if master.startswith("sc://"):
        remote: SparkSession = SparkSession.builder.remote(master).getOrCreate()
        return remote
    ensure_java(Path(tempfile.gettempdir()))
    return SparkSession.builder.master(master).appName("sparkfusion").getOrCreate()


def start_local(master: str = MASTER, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a local session. Its workers run the Python that this process runs, unless PYSPARK_PYTHON is set."""
    ensure_java(Path(tempfile.gettempdir()))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quick = _IMPORTED_BEFORE if os.environ["PYSPARK_PYTHON"] == sys.executable else {}
    builder = SparkSession.builder.master(master).appName("sparkfusion")
    for name, value in {**LOCAL_SPARK_SETTINGS, **quick, **(settings or {})}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
