"""The Spark jobs of one query. They have one tag, so that all of them can be cancelled, and no others."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sparkfusion.errors import QueryCancelledError
from sparkfusion.runner.coordinated_job import CLOSE_SECONDS

if TYPE_CHECKING:
    from pyspark import SparkContext

_CANCEL_AGAIN_SECONDS = 0.1
_EXECUTION = "spark.sql.execution.id"
_log = logging.getLogger("sparkfusion")


class TaggedJobs(ABC):
    """Counts the running jobs. The thread that enters `under_way` runs a job."""

    def __init__(self, tag: str) -> None:
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
            self._begin(description)
            yield
        finally:
            self._end()
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def stop(self) -> None:
        """Cancel the jobs, and repeat until none is left: one may still be on its way to the scheduler."""
        deadline = time.monotonic() + CLOSE_SECONDS
        with self._changed:
            self._stopped = True
            while self._count and time.monotonic() < deadline:
                try:
                    self._cancel()
                except Exception:  # the user has stopped Spark; the consumer must learn how its query ended
                    self._log_failure()
                self._changed.wait(_CANCEL_AGAIN_SECONDS)

    def _log_failure(self) -> None:
        _log.warning("%s: Spark did not cancel its jobs", self._tag, exc_info=True)

    @abstractmethod
    def _begin(self, description: str) -> None:
        """Tag the jobs that this thread starts from now on."""

    def _end(self) -> None:
        """Called by the same thread when its job has ended."""
        return

    @abstractmethod
    def _cancel(self) -> None:
        """Ask Spark to cancel the jobs that have the tag and run now."""


class ClassicJobs(TaggedJobs):
    """Jobs of a Spark context. `execution` gives the number of the entry in Spark's SQL tab that they belong to."""

    def __init__(self, spark: SparkContext, tag: str, execution: Callable[[], int | None] = lambda: None) -> None:
        super().__init__(tag)
        self._spark = spark
        self._execution = execution

    def _begin(self, description: str) -> None:
        self._spark.addJobTag(self._tag)
        self._spark.setJobDescription(description)
        execution = self._execution()
        if execution is not None:
            self._spark.setLocalProperty(_EXECUTION, str(execution))

    def _end(self) -> None:
        if self._spark._jsc is not None and self._execution() is not None:
            self._spark._jsc.setLocalProperty(_EXECUTION, None)

    def _cancel(self) -> None:
        self._spark.cancelJobsWithTag(self._tag)
