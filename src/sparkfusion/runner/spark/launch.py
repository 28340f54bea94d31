"""A good local Spark session for `connect("spark")`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from sparkfusion.runner.spark.java import ensure_java

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.unix.domain.socket.enabled": "true",
}


def local_session() -> tuple[SparkSession, bool]:
    """The active session if there is one, else a new local one; and whether it is ours to stop."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active, False
    ensure_java(Path(tempfile.gettempdir()))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[*]").appName("sparkfusion")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session, True
