"""The long Spark job that holds resident workers, and the runner that sends tasks to them."""

from __future__ import annotations

import functools
import itertools
import logging
import os
import threading
import time
import weakref
from collections.abc import Sequence

from pyspark import SparkContext

from sparkfusion.config import Settings
from sparkfusion.errors import ExternalError, SparkfusionError
from sparkfusion.ids import new_query_id
from sparkfusion.runner.base import QueryJob, RunningJob
from sparkfusion.runner.cluster import ClusterRunner
from sparkfusion.runner.spark.driver_calls.register_call import RegisterAddress
from sparkfusion.runner.spark.driver_calls.registry import Registry
from sparkfusion.runner.spark.executor_memory import ExecutorBudget
from sparkfusion.runner.spark.feeding import LazyFeedServer
from sparkfusion.runner.spark.master import count_executors, slots_of_executor
from sparkfusion.runner.spark.resident_task import ResidentSpec, serve_resident
from sparkfusion.runner.spark.spark_errors import spark_error
from sparkfusion.runner.spark.tagged_jobs import ClassicJobs
from sparkfusion.shared_secrets import new_secret
from sparkfusion.transport.membership import Cluster
from sparkfusion.worker import open_work

_START_SECONDS = 30.0  # until a query no longer waits for the first worker
_AGAIN_SECONDS = 10.0  # between two attempts to reach executors that have no worker
_END_SECONDS = 10.0  # that workers get to end by themselves
_LAST_SECONDS = 1.0  # and then their job
_TURN_SECONDS = 0.5
_log = logging.getLogger("sparkfusion")


class ResidentJob:
    """Resident workers from when they are started until `close`, or until they have been idle for long.

    Spark restarts the task of a lost executor itself, and the new worker registers. Executors that came later get a
    worker when the next query starts. Any thread may call any method.
    """

    def __init__(
        self, spark: SparkContext, feeding: LazyFeedServer, memory: ExecutorBudget, settings: Settings
    ) -> None:
        self._owner = os.getpid()
        self._spark = spark
        self._token = new_secret()
        self._registry = Registry()
        self._server = feeding.server(settings)
        self._secret = self._server.add_registry(self._registry.serve)
        self._register = RegisterAddress(
            feeding.host(settings), self._server.port, self._secret, self._server.certificate
        )
        self._jobs = ClassicJobs(spark, f"sparkfusion-resident-{new_query_id()}")
        self._launches = itertools.count()
        self._lock = threading.Lock()
        self._closing = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._launched_at = 0.0
        self._cluster: ClusterRunner | None = None
        self._error: SparkfusionError | None = None
        self._task_memory = memory.share()
        self._idle_seconds = settings.integer("resident_idle_seconds")
        self._used_at = time.monotonic()
        self._users = 0
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="sparkfusion-resident-idle", daemon=True)
        self._watcher.start()
        # made after the server, so called before pyarrow's own: that one waits for the calls of workers, for ever
        self._at_exit = weakref.finalize(self, _end_at_exit, self._owner, self._registry, self._threads)

    @property
    def ended(self) -> bool:
        """Whether it takes no more queries."""
        return self._ended.is_set()

    @property
    def failed(self) -> bool:
        """Whether there are no workers because Spark has given up the job that should start them."""
        return self._error is not None and not self._registry.addresses()

    def run(self, job: QueryJob) -> RunningJob:
        """Start a query on the workers. Raises an `ExternalError` if there are none; the query has not begun then."""
        with self._lock:
            if self._ended.is_set():
                raise ExternalError("the resident workers have ended")
            self._users += 1
            self._idle_seconds = job.settings.integer("resident_idle_seconds")
        try:
            self._reach_executors()
            return self._runner().start(job)
        finally:
            with self._lock:
                self._users -= 1
                self._used_at = time.monotonic()

    def describe(self, settings: Settings) -> str:
        """The workers in a few words."""
        runner = self._cluster if self._registry.addresses() else None
        return runner.describe(settings).replace("worker", "resident worker", 1) if runner else "on resident workers"

    def close(self) -> None:
        """End the workers, then the job: politely, and if that takes long, by cancelling it. Idempotent."""
        if self._owner != os.getpid():  # a fork: they are the parent's
            return
        with self._closing:
            with self._lock:
                self._ended.set()
            if self._cluster is not None:
                self._cluster.close()
            _end_workers(self._registry, self._threads)
            self._jobs.stop()
            for thread in self._threads:
                thread.join(_END_SECONDS)
            self._server.remove_registry(self._secret)
            self._at_exit.detach()
        if self._watcher is not threading.current_thread():
            self._watcher.join()

    def _reach_executors(self) -> None:
        """Start workers in executors that have none, and wait until the first ones are there."""
        with self._lock:
            self._threads[:] = [thread for thread in self._threads if thread.is_alive()]
            if not self._threads or time.monotonic() - self._launched_at > _AGAIN_SECONDS:
                missing = max(1, count_executors(self._spark)) - self._registry.count_tasks()
                if missing > 0:
                    self._launch(missing)
        self._registry.wait_for_workers(_START_SECONDS)
        if self._registry.addresses():
            return
        if self._error is not None:
            raise ExternalError(f"resident workers did not start: {self._error.message}", hint=self._error.hint)
        raise ExternalError("no resident worker has registered yet: Spark may have no free slot for its task")

    def _launch(self, tasks: int) -> None:
        """One Spark job of so many tasks, on a thread of its own."""
        self._launched_at = time.monotonic()
        self._error = None
        slots = slots_of_executor(self._spark)
        spec = ResidentSpec(next(self._launches), self._register, self._token, slots, self._task_memory)
        self._registry.expect(spec.launch, tasks)
        thread = threading.Thread(target=self._hold, args=(spec, tasks), name="sparkfusion-resident", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _hold(self, spec: ResidentSpec, tasks: int) -> None:
        work = functools.partial(serve_resident, spec)
        try:
            with self._jobs.under_way("sparkfusion: resident workers"):
                self._spark.parallelize(range(tasks), tasks).mapPartitions(work).collect()
        except Exception as error:
            if not self._ended.is_set():
                self._error = spark_error(error, [])
                _log.warning("resident workers were lost: %s", self._error.message)
        finally:
            self._registry.forget(spec.launch)

    def _runner(self) -> ClusterRunner:
        with self._lock:
            if self._ended.is_set():
                raise ExternalError("the resident workers have ended")
            if self._cluster is None:
                self._cluster = ClusterRunner(Cluster(self._registry.addresses, token=self._token))
            return self._cluster

    def _watch(self) -> None:
        """End the workers when no query has used them for as long as the last query said."""
        while not self._ended.wait(_TURN_SECONDS):
            with self._lock:
                busy = self._users > 0 or (self._cluster is not None and self._cluster.has_queries())
                self._used_at = time.monotonic() if busy else self._used_at
                idle = time.monotonic() - self._used_at
                if busy or idle < self._idle_seconds:
                    continue
                self._ended.set()
            _log.info("resident workers end after %.0f idle seconds", idle)
            self.close()


def _end_at_exit(owner: int, registry: Registry, threads: Sequence[threading.Thread]) -> None:
    """Called when the process ends and the session was not closed."""
    if owner == os.getpid():  # else a fork: they are the parent's
        open_work.stop()  # so that no query takes the end of its workers for a loss
        _end_workers(registry, threads)


def _end_workers(registry: Registry, threads: Sequence[threading.Thread]) -> None:
    """End the workers, and give their jobs a moment to end too."""
    registry.end()
    registry.wait_until_empty(_END_SECONDS)
    for thread in threads:
        thread.join(_LAST_SECONDS)
