"""Check executors in the background while the user goes on: the first Spark job with Python workers takes seconds."""

from __future__ import annotations

import threading
from contextlib import suppress

from pyspark import SparkContext

from sparkfusion.ids import new_query_id
from sparkfusion.runner.spark.environment import check_executors, is_checked
from sparkfusion.runner.spark.tagged_jobs import TaggedJobs


class HeadStart:
    """Starts to check the executors of a context, which also starts their Python workers. Code that needs executors
    calls `check_executors`, which waits for this check and reports what does not match."""

    def __init__(self, spark: SparkContext) -> None:
        self._spark = spark
        self._jobs = TaggedJobs(spark, f"sparkfusion-check-{new_query_id()}")
        self._thread: threading.Thread | None = None
        if not is_checked(spark):
            self._thread = threading.Thread(target=self._run, name="sparkfusion-check", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with suppress(Exception), self._jobs.under_way("sparkfusion: do executors fit the driver?"):
            check_executors(self._spark)

    def close(self) -> None:
        if self._thread is not None:
            self._jobs.stop()
            self._thread.join()
