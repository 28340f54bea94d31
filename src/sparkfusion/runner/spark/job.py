"""One query on Spark: every stage is a job of plain Python tasks, whose frames never cross the JVM."""

from __future__ import annotations

import functools
import logging
import os
import pickle
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext

from sparkfusion.errors import QueryCancelledError, ResourceError, SparkfusionError, classify
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.store import SHARED_MEMORY
from sparkfusion.ids import TaskKey
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.drive import HostedTask
from sparkfusion.runner.job import PATIENCE_SECONDS, DrivenJob
from sparkfusion.runner.machine import HEAD
from sparkfusion.runner.spark.blame import spark_error
from sparkfusion.runner.spark.body import SparkAnswer, SparkTask, run_on_executor
from sparkfusion.runner.spark.home import SharedHome
from sparkfusion.runner.spark.master import attempts_of, is_local
from sparkfusion.worker.task import TaskReport

_CANCEL_AGAIN_SECONDS = 0.1
_log = logging.getLogger("sparkfusion")


class SparkJob(DrivenJob):
    """The driver's task host on Spark. The head runs here, over files that the tasks wrote."""

    def __init__(self, job: QueryJob, spark: SparkContext) -> None:
        self._attempts = attempts_of(spark)
        super().__init__(_left_to_spark(job) if self._attempts > 1 else job, max(2, spark.defaultParallelism))
        self._spark = spark
        self._tag = f"sparkfusion-{job.query}"
        self._jobs_changed = threading.Condition()
        self._jobs_under_way = 0
        self._stopped = False
        shared = job.settings.text("store_dir")
        local = is_local(spark)
        if not local and not shared:
            raise ResourceError(
                f"frames have no place that every executor of {spark.master} reaches",
                hint="set sparkfusion.store_dir to a directory that driver and executors share (NFS, a mount)",
            )
        self._disk = SharedHome(job.query, Path(shared or tempfile.gettempdir()))
        in_memory = local and not shared and os.access(SHARED_MEMORY, os.W_OK)
        self._memory = SharedHome(job.query, SHARED_MEMORY) if in_memory else None
        self._memory_used = 0

    def start(self, tasks: Sequence[HostedTask]) -> None:
        if tasks[0].key.stage == HEAD:
            self.run_here(tasks[0])
        elif tasks[0].streams:  # a job for each task: its rows go to the reader when it is done
            for task in tasks:
                self._pool.submit(functools.partial(self._run_job, [task]))
        else:
            self._pool.submit(functools.partial(self._run_job, tasks))

    def stop_tasks(self) -> None:
        """Cancel the query's Spark jobs; again, until none is left: one may be on its way to the scheduler."""
        super().stop_tasks()
        deadline = time.monotonic() + PATIENCE_SECONDS
        with self._jobs_changed:
            self._stopped = True
            while self._jobs_under_way and time.monotonic() < deadline:
                try:
                    self._spark.cancelJobsWithTag(self._tag)
                except Exception:  # the user has stopped Spark; the reader must learn how its query ended
                    _log.warning("query %s: Spark did not cancel its jobs", self._job.query, exc_info=True)
                self._jobs_changed.wait(_CANCEL_AGAIN_SECONDS)

    def discard(self, key: TaskKey) -> None:
        """Attempts are named by Spark; what a lost one wrote goes when the query ends."""

    def release(self) -> None:
        self._disk.close()
        if self._memory is not None:
            self._memory.close()

    def _run_job(self, tasks: Sequence[HostedTask]) -> None:
        """Run tasks as one Spark job and tell the driver of each; on the pool's thread, must not raise."""
        told = 0
        try:
            answers = self._collect([self._spark_task(task, len(tasks)) for task in tasks])
            for task, answer in zip(tasks, answers, strict=True):
                told += 1
                self._tell(task, answer)
        except ChannelClosedError:
            self._fail_all(tasks, QueryCancelledError("the reader closed the query"), streamed=True)
        except Exception as error:
            self._fail_all(tasks, spark_error(error, [task.key for task in tasks]), streamed=told > 0)

    def _collect(self, tasks: list[SparkTask]) -> list[SparkAnswer]:
        with self._under_way():
            self._spark.addJobTag(self._tag)
            self._spark.setJobDescription(f"sparkfusion query {self._job.query}, stage {tasks[0].spec.key.stage}")
            slices = self._spark.parallelize([pickle.dumps(task) for task in tasks], len(tasks))
            return [pickle.loads(answer) for answer in slices.mapPartitions(run_on_executor).collect()]

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        with self._jobs_changed:
            if self._stopped:
                raise QueryCancelledError("the query has ended")
            self._jobs_under_way += 1
        try:
            yield
        finally:
            with self._jobs_changed:
                self._jobs_under_way -= 1
                self._jobs_changed.notify_all()

    def _tell(self, task: HostedTask, answer: SparkAnswer) -> None:
        if answer.error is not None:
            answer.error.where = task.key  # Spark counts attempts over all its tasks
            self._driver.failed(task.key, answer.error, streamed=False)
            return
        assert answer.report is not None
        report = _under_key(answer.report, task.key)
        self._memory_used += self._bytes_in_memory(report)
        if task.streams:
            for file in report.manifest.files:
                with pa.memory_map(file.path) as source, pa.ipc.open_file(source) as reader:
                    for index in range(reader.num_record_batches):
                        self._channel.put(reader.get_batch(index))
        self._driver.succeeded(report)

    def _fail_all(self, tasks: Sequence[HostedTask], error: SparkfusionError, *, streamed: bool) -> None:
        for task in tasks:
            self._driver.failed(task.key, classify(error, task.key), streamed=streamed and task.streams)

    def _spark_task(self, task: HostedTask, siblings: int) -> SparkTask:
        """Spills go to the query's directory, unless the user chose one: a worker that is killed leaves its own."""
        left = max(0, self._job.settings.resolved_store_memory() - self._memory_used)
        chosen = "" if self._job.settings.text("store_dir") else self.spec(task).spill_directory
        return SparkTask(
            spec=replace(self.spec(task), spill_directory=chosen or str(self._disk.path)),
            memory_home=str(self._memory.path) if self._memory is not None and left else "",
            disk_home=str(self._disk.path),
            memory_budget=left // siblings,
            compression=self._job.settings.text("frame_compression"),
            attempts=self._attempts,
        )

    def _bytes_in_memory(self, report: TaskReport) -> int:
        home = f"{SHARED_MEMORY}/"
        return sum(file.bytes for file in report.manifest.files if file.path.startswith(home))


def _left_to_spark(job: QueryJob) -> QueryJob:
    """The job without retries of ours: Spark tries a task several times itself, and both would multiply."""
    settings = job.settings.copy()
    settings.set("sparkfusion.task_retries", 0)
    return replace(job, settings=settings)


def _under_key(report: TaskReport, key: TaskKey) -> TaskReport:
    return replace(report, key=key, manifest=replace(report.manifest, key=key))
