"""Looking at Spark and at the disk from a test."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from tests.behaviour.probes import until


def active_jobs(spark: SparkSession) -> list[int]:
    return list(spark.sparkContext.statusTracker().getActiveJobsIds())


def wait_for_no_jobs(spark: SparkSession) -> None:
    until(lambda: not active_jobs(spark), "no Spark job is active")


def frame_files(*places: Path) -> list[Path]:
    """Frame files of this process's queries below these places, now."""
    homes = [home for place in places for home in place.glob(f"sparkfusion-{os.getpid()}-*")]
    return [file for home in homes for file in home.rglob("*.arrow")]


def homes_on_disk_and_in_memory() -> list[Path]:
    """Directories of this process's queries, now."""
    places = (Path(tempfile.gettempdir()), Path("/dev/shm"))
    return [home for place in places for home in place.glob(f"sparkfusion-{os.getpid()}-*")]
