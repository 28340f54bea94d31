"""Resident workers of one session: which queries run on them, and when they are started again."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pyspark import SparkContext

from sparkfusion.config import Settings
from sparkfusion.errors import ExternalError
from sparkfusion.live_objects import LiveObjects
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.base import QueryJob, RunningJob
from sparkfusion.runner.spark.classic_tables import ClassicTables
from sparkfusion.runner.spark.environment import check_executors
from sparkfusion.runner.spark.executor_memory import ExecutorBudget
from sparkfusion.runner.spark.feeding import LazyFeedServer
from sparkfusion.runner.spark.master import is_local, settings_of, slots_of_executor
from sparkfusion.runner.spark.protection import network_protection

if TYPE_CHECKING:
    from sparkfusion.runner.spark.resident_job import ResidentJob

_RETRY_SECONDS = 60.0
_log = logging.getLogger("sparkfusion")
_choosing = threading.Lock()
_holders: weakref.WeakKeyDictionary[SparkContext, LiveObjects[ResidentJob]] = weakref.WeakKeyDictionary()


class ResidentWorkers:
    """Starts queries on resident workers where that is possible. Any thread may call any method."""

    def __init__(
        self, spark: SparkContext, tables: ClassicTables, feeding: LazyFeedServer, memory: ExecutorBudget
    ) -> None:
        self._spark = spark
        self._tables = tables
        self._feeding = feeding
        self._memory = memory
        self._job: ResidentJob | None = None
        self._closed = False
        self._problem = ""
        self._retry_at = 0.0
        self._warned: set[str] = set()

    def start(self, job: QueryJob) -> RunningJob | None:
        """Start a query on resident workers; None if it has to run as Spark jobs."""
        if not is_wanted(job.settings) or self._reads_spark(job.graph) or self._is_stopped():
            return None
        return self._start(job, again=True)

    def _start(self, job: QueryJob, *, again: bool) -> RunningJob | None:
        workers = self._open_workers(job.settings)
        if workers is None:
            return None
        try:
            running = workers.run(job)
        except ExternalError as error:
            if workers.ended and again:  # idle for long, just before this query came
                return self._start(job, again=False)
            self._problem = error.message
            self._retry_at = time.monotonic() + _RETRY_SECONDS if workers.failed else 0.0
            self._warn(error.message)
            return None
        self._problem = ""
        return running

    def describe(self, settings: Settings) -> str:
        """The workers of a query that runs on them."""
        job = self._job
        return "on resident workers" if job is None or job.ended else job.describe(settings)

    def why_jobs(self, graph: StageGraph | None) -> str | None:
        """Why a query runs as Spark jobs although resident workers are wanted; None if it runs on them."""
        if graph is not None and self._reads_spark(graph):
            return "it reads a Spark DataFrame"
        with _choosing:
            return self._why_none() or self._problem or None

    def close(self) -> None:
        """End the workers, for good."""
        with _choosing:
            self._closed = True
            job, self._job = self._job, None
        if job is not None:
            job.close()

    def _open_workers(self, settings: Settings) -> ResidentJob | None:
        """The job that holds the workers, a new one if there is none; None if there cannot be one."""
        check_executors(self._spark)
        with _choosing:
            old, reason = self._job, self._why_none()
            if reason is None and old is not None and not old.ended:
                return old
            if reason is None:
                from sparkfusion.runner.spark.resident_job import ResidentJob  # it needs pyarrow.flight

                self._job = ResidentJob(self._spark, self._feeding, self._memory, settings)
                _holders.setdefault(self._spark, LiveObjects()).add(self._job)
            made = self._job
        if reason is not None:
            self._warn(reason)
            return None
        if old is not None:
            old.close()
        return made

    def _why_none(self) -> str | None:
        """Why no workers can be used now."""
        if self._closed:
            return "the session is closed"
        if time.monotonic() < self._retry_at:
            return self._problem
        if self._job is not None and not self._job.ended:
            return None
        slots = slots_of_executor(self._spark)
        others = count_holders(self._spark, besides=self._job)
        if slots and others + 1 >= slots:
            held = f", and {others} of them are held by other sessions" if others else ""
            tasks = "one task" if slots == 1 else f"{slots} tasks"
            return f"an executor runs {tasks} at once{held}, and a resident worker would leave none for Spark jobs"
        protection = network_protection(settings_of(self._spark).get)
        if protection is not None and not is_local(self._spark):
            return f"Spark protects its network ({protection}), and connections to resident workers are not encrypted"
        return None if find_spec("pyarrow._flight") is not None else "this pyarrow does not contain Arrow Flight"

    def _is_stopped(self) -> bool:
        """Whether the user has stopped Spark. The error for that comes from the Spark job."""
        return self._spark._jsc is None

    def _reads_spark(self, graph: StageGraph) -> bool:
        return any(self._tables.read_by(stage.plan) for stage in graph.stages)

    def _warn(self, reason: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            _log.warning("queries run as Spark jobs, although sparkfusion.spark_mode is resident: %s", reason)


def count_holders(spark: SparkContext, besides: ResidentJob | None = None) -> int:
    """How many sessions have resident workers now: each holds a slot of every executor."""
    return sum(not job.ended for job in _holders.get(spark, ()) if job is not besides)


def is_wanted(settings: Settings) -> bool:
    return settings.text("spark_mode") == "resident"
