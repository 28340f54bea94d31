"""The runner that hosts tasks on a user's Spark session."""

from __future__ import annotations

import weakref
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkfusion.errors import UserError
from sparkfusion.runner.base import QueryJob, RunningJob
from sparkfusion.runner.spark.environment import check_executors
from sparkfusion.runner.spark.job import SparkJob


class SparkRunner:
    """Runs queries as jobs of a Spark session. Closing it leaves a session that the user brought as it was."""

    name = "spark"

    def __init__(self, session: Any, *, owned: bool = False) -> None:
        self._session = classic_session(session)
        self._context: SparkContext = self._session.sparkContext
        self._owned = owned
        self._jobs: weakref.WeakSet[SparkJob] = weakref.WeakSet()
        try:
            check_executors(self._context)
        except BaseException:
            self.close()
            raise

    @property
    def slots(self) -> int:
        return self._context.defaultParallelism

    def start(self, job: QueryJob) -> RunningJob:
        running = SparkJob(job, self._context)
        self._jobs.add(running)
        running.begin()
        return running

    def close(self) -> None:
        for job in list(self._jobs):
            job.close()
        if self._owned:
            self._session.stop()


def classic_session(session: Any) -> SparkSession:
    """The session if it is a classic one; a clear answer if it is not."""
    if not isinstance(session, SparkSession):
        kind = f"{type(session).__module__}.{type(session).__qualname__}"
        connect = ".connect." in kind
        raise UserError(
            "Spark Connect sessions are not supported yet" if connect else f"cannot run on a {kind}",
            hint="use a classic SparkSession: one whose builder has a master, not a remote",
        )
    if session.sparkContext._jsc is None:  # the only trace that `stop` leaves on the Python side
        raise UserError("the Spark session is stopped", hint="start a new one, or use connect('spark')")
    return session
