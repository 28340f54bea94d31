"""The runner that runs tasks on a user's Spark Connect session."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

from sparkfusion.config import Settings
from sparkfusion.errors import SparkfusionError, UserError
from sparkfusion.ids import new_query_id
from sparkfusion.live_objects import LiveObjects
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.base import QueryJob, RunningJob
from sparkfusion.runner.coordinated_job import begin_or_cancel
from sparkfusion.runner.spark.connect.application import ConnectApplication
from sparkfusion.runner.spark.connect.connect_job import ConnectJob
from sparkfusion.runner.spark.connect.connect_jobs import ConnectJobs
from sparkfusion.runner.spark.connect.connect_tables import ConnectTables
from sparkfusion.runner.spark.connect.kept_job import KeptJob
from sparkfusion.runner.spark.feeding import LazyFeedServer
from sparkfusion.runner.spark.head_start import HeadStart
from sparkfusion.runner.spark.master import count_machines
from sparkfusion.runner.spark.protection import check_files
from sparkfusion.urls import is_url

J = TypeVar("J", bound=ConnectJob)
OLDEST_SERVER = (4, 1)
"""The first that brings a row to a task by its number: `repartitionById`."""


class ConnectRunner:
    """Runs queries as DataFrame jobs of a Connect session. Closing it does not change the session."""

    def __init__(self, session: Any) -> None:
        application = ConnectApplication(open_server_session(session))
        self._application = application
        self._jobs: LiveObjects[ConnectJob] = LiveObjects()
        self.spark = ConnectTables(application, self._start_kept)
        self._feeding = LazyFeedServer(application.feed_host, application.network_protection)
        jobs = ConnectJobs(application.session, f"sparkfusion-check-{new_query_id()}")
        self._head_start = HeadStart(jobs, application.check, is_needed=not application.is_checked)

    @property
    def slots(self) -> int:
        return self._application.slots

    @property
    def machines(self) -> int:
        return count_machines(self.slots, self.cores_per_task)

    @property
    def cores_per_task(self) -> int | None:
        return self._application.cores_per_task

    @property
    def machine_memory(self) -> int:
        return 0 if self.cores_per_task is None else self._application.memory.share()

    def takes_wide_tasks(self, settings: Settings) -> bool:
        return True

    def start(self, job: QueryJob) -> RunningJob:
        return self._start(job, ConnectJob)

    def _start_kept(self, job: QueryJob) -> KeptJob:
        return self._start(job, KeptJob)

    def _start(self, job: QueryJob, kind: type[J]) -> J:
        check_files(self._application.conf, job.settings)
        self._application.memory.check(job.settings)
        running = kind(job, self._application, self.spark, self._feeding)
        self._jobs.add(running)
        return begin_or_cancel(running)

    def reaches(self, directory: Path) -> bool:
        existing = next(path for path in (directory, *directory.parents) if path.is_dir())
        self._application.check()
        try:
            self._application.check_reach(str(existing))
        except SparkfusionError:
            return False
        return True

    def shares_files(self, settings: Settings) -> bool:
        try:
            choice = self._application.choose_store(settings)
        except SparkfusionError:  # a query that needs a store says so when it starts
            return False
        return choice.kind == "local" or not is_url(choice.directory)

    def describe(self, settings: Settings, graph: StageGraph | None = None) -> str:
        master = f" ({self._application.master})" if self._application.master else ""
        why = ", as Spark jobs because Spark Connect has no resident workers"
        return (
            f"on Spark Connect {self._application.host}{master}, {self._describe_store(settings)}"
            f"{why if settings.text('spark_mode') == 'resident' else ''}"
        )

    def _describe_store(self, settings: Settings) -> str:
        try:
            choice = self._application.choose_store(settings)
        except UserError as error:
            return error.message
        return str(choice) if choice.directory else "frames on this machine's disk"

    def close(self) -> None:
        for job in self._jobs:
            job.close()
        self._head_start.close()
        self._feeding.close()


def open_server_session(session: Any) -> Any:
    """The session if it is open, at a server that can run our jobs; raises a clear error if it is not."""
    if session.is_stopped:
        raise UserError("the Spark Connect session is stopped", hint="make a new one: SparkSession.builder.remote(…)")
    version = str(session.version)
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < OLDEST_SERVER:
        needed = ".".join(map(str, OLDEST_SERVER))
        raise UserError(
            f"the Spark Connect server runs Spark {version}, and sparkfusion needs {needed} or later",
            hint="use a newer server, or a classic SparkSession",
        )
    return session
