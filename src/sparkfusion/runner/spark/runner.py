"""The runner that runs tasks on a user's classic Spark session."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkfusion.config import Settings
from sparkfusion.errors import SparkfusionError, UserError
from sparkfusion.ids import new_query_id
from sparkfusion.live_objects import LiveObjects
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.base import QueryJob, RunningJob
from sparkfusion.runner.coordinated_job import begin_or_cancel
from sparkfusion.runner.spark.choice import choose_store
from sparkfusion.runner.spark.environment import check_executors, is_checked
from sparkfusion.runner.spark.executor_memory import Conf, ExecutorBudget, read_memory
from sparkfusion.runner.spark.feeding import LazyFeedServer, driver_host
from sparkfusion.runner.spark.head_start import HeadStart
from sparkfusion.runner.spark.lineage import DataFrames
from sparkfusion.runner.spark.master import count_machines, is_local, settings_of
from sparkfusion.runner.spark.protection import check_files, network_protection
from sparkfusion.runner.spark.reach import check_reach
from sparkfusion.runner.spark.resident import ResidentWorkers, is_wanted
from sparkfusion.runner.spark.spark_job import SparkJob
from sparkfusion.runner.spark.sql_tab import SqlEntry, SqlTab
from sparkfusion.runner.spark.tagged_jobs import ClassicJobs
from sparkfusion.runner.spark.task_cpus import most_cpus, usual_cpus
from sparkfusion.urls import is_url


class SparkRunner:
    """Runs queries as jobs of a Spark session, or on resident workers in its executors. Closing it does not change a
    session that the user brought."""

    def __init__(self, session: Any, *, owned: bool = False) -> None:
        self._session = classic_session(session)
        self._context: SparkContext = self._session.sparkContext
        self._owned = owned
        self._jobs: LiveObjects[SparkJob] = LiveObjects()
        self._conf: Conf = settings_of(self._context).get
        self._memory = ExecutorBudget(functools.partial(read_memory, self._context.master or "", self._conf))
        self.spark = DataFrames(self._session, self._conf, self._memory)
        self._feeding = LazyFeedServer(functools.partial(driver_host, self._context), self._network_protection)
        self._sql_tab = SqlTab(self._session, self._conf)
        self._resident = ResidentWorkers(self._context, self.spark, self._feeding, self._memory)
        jobs = ClassicJobs(self._context, f"sparkfusion-check-{new_query_id()}")
        self._head_start = HeadStart(jobs, self._get_ready, is_needed=not is_checked(self._context))

    def _get_ready(self) -> None:
        """Prepare what the first query needs. Runs on a thread while the session is opened."""
        check_executors(self._context)
        self._sql_tab.prepare()

    @property
    def slots(self) -> int:
        return self._context.defaultParallelism

    @property
    def machines(self) -> int:
        return count_machines(self.slots, self.cores_per_task)

    @property
    def cores_per_task(self) -> int | None:
        if is_local(self._context):
            return None
        return most_cpus(self._context)

    @property
    def machine_memory(self) -> int:
        cores = self.cores_per_task
        return 0 if cores is None else self._memory.share(cores // usual_cpus(self._context))

    def takes_wide_tasks(self, settings: Settings) -> bool:
        """Not with frames in Spark's own shuffle: they are identified by their task, not by a partition of it."""
        return choose_store(settings, self._context).kind != "spark"

    def start(self, job: QueryJob) -> RunningJob:
        check_files(self._conf, job.settings)
        self._memory.check(job.settings)
        resident = self._resident.start(SqlEntry(self._sql_tab, job).job)
        if resident is not None:
            return resident
        running = SparkJob(self._context, self.spark, self._feeding, self._memory, SqlEntry(self._sql_tab, job))
        self._jobs.add(running)
        return begin_or_cancel(running)

    def _network_protection(self) -> str | None:
        """Connections on loopback need none."""
        return None if is_local(self._context) else network_protection(self._conf)

    def reaches(self, directory: Path) -> bool:
        if is_local(self._context):
            return True
        existing = next(path for path in (directory, *directory.parents) if path.is_dir())
        try:
            check_reach(self._context, str(existing))
        except SparkfusionError:
            return False
        return True

    def shares_files(self, settings: Settings) -> bool:
        choice = choose_store(settings, self._context)
        return is_local(self._context) or (choice.kind == "shared" and not is_url(choice.directory))

    def describe(self, settings: Settings, graph: StageGraph | None = None) -> str:
        place = f"on Spark {self._context.master}"
        reason = self._resident.why_jobs(graph) if is_wanted(settings) else None
        if is_wanted(settings) and reason is None:
            return f"{place}, {self._resident.describe(settings)}"
        why = f", as Spark jobs because {reason}" if reason is not None else ""
        return f"{place}, {choose_store(settings, self._context)}{why}"

    def close(self) -> None:
        for job in self._jobs:
            job.close()
        self._resident.close()
        self._head_start.close()
        self._feeding.close()
        if self._owned:
            self._session.stop()


def classic_session(session: Any) -> SparkSession:
    """The session if it is a classic one; raises a clear error if it is not."""
    if not isinstance(session, SparkSession):
        kind = f"{type(session).__module__}.{type(session).__qualname__}"
        raise UserError(f"cannot run on a {kind}", hint="use a SparkSession")
    if session.sparkContext._jsc is None:  # the only trace that `stop` leaves on the Python side
        raise UserError("the Spark session is stopped", hint="start a new one, or use connect('spark')")
    return session
