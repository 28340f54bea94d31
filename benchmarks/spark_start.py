"""The local Spark session of the benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMORY = {"spark.driver.memory": "6g"}
"""Enough for Spark SQL at scale 10; otherwise Spark and sparkfusion run with their defaults."""


def start_spark(settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session on all cores of this machine."""
    from sparkfusion.runner.spark.launch import start_local

    return start_local(settings={**MEMORY, **(settings or {})})
