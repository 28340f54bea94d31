"""The Spark jobs of one query. They have one tag, so that all of them can be cancelled, and no others."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext

from sparkfusion.errors import QueryCancelledError
from sparkfusion.runner.coordinated_job import PATIENCE_SECONDS

_CANCEL_AGAIN_SECONDS = 0.1
_log = logging.getLogger("sparkfusion")


class TaggedJobs:
    """Counts the running jobs. The thread that enters `under_way` runs a job."""

    def __init__(self, spark: SparkContext, tag: str) -> None:
        self._spark = spark
        self._tag = tag
        self._changed = threading.Condition()
        self._count = 0
        self._stopped = False

    @contextmanager
    def under_way(self, description: str) -> Iterator[None]:
        with self._changed:
            if self._stopped:
                raise QueryCancelledError("the query has ended")
            self._count += 1
        try:
            self._spark.addJobTag(self._tag)
            self._spark.setJobDescription(description)
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Cancel the jobs, and repeat until none is left: one may still be on its way to the scheduler."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self._changed:
            self._stopped = True
            while self._count and time.monotonic() < deadline:
                try:
                    self._spark.cancelJobsWithTag(self._tag)
                except Exception:  # the user has stopped Spark; the consumer must learn how its query ended
                    _log.warning("%s: Spark did not cancel its jobs", self._tag, exc_info=True)
                self._changed.wait(_CANCEL_AGAIN_SECONDS)
