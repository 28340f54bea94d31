"""One query on Spark: every stage is a job of plain Python tasks, whose frames never cross the JVM."""

from __future__ import annotations

import functools
import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext

from sparkfusion.errors import ExternalError, QueryCancelledError, ResourceError, classify
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.owned import OwnedDirectory
from sparkfusion.exchange.store import SHARED_MEMORY
from sparkfusion.ids import TaskKey
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.drive import HostedTask
from sparkfusion.runner.job import DrivenJob
from sparkfusion.runner.machine import HEAD
from sparkfusion.runner.spark.body import SparkAnswer, SparkTask, run_on_executor
from sparkfusion.worker.task import TaskReport


class SparkJob(DrivenJob):
    """The driver's task host on Spark. The head runs here, over files that the tasks wrote."""

    def __init__(self, job: QueryJob, spark: SparkContext) -> None:
        super().__init__(job, max(2, spark.defaultParallelism))
        self._spark = spark
        self._tag = f"sparkfusion-{job.query}"
        shared = job.settings.text("store_dir")
        local = is_local(spark)
        if not local and not shared:
            raise ResourceError(
                f"frames have no place that every executor of {spark.master} reaches",
                hint="set sparkfusion.store_dir to a directory that driver and executors share (NFS, a mount)",
            )
        self._disk = OwnedDirectory(job.query, Path(shared or tempfile.gettempdir()))
        self._memory = OwnedDirectory(job.query, SHARED_MEMORY) if local and not shared else None
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
        super().stop_tasks()
        self._spark.cancelJobsWithTag(self._tag)

    def discard(self, key: TaskKey) -> None:
        """Attempts are named by Spark; what a lost one wrote goes when the query ends."""

    def release(self) -> None:
        self._disk.close()
        if self._memory is not None:
            self._memory.close()

    def _run_job(self, tasks: Sequence[HostedTask]) -> None:
        """Run tasks as one Spark job and tell the driver of each; on the pool's thread, must not raise."""
        try:
            answers = self._collect([self._spark_task(task, len(tasks)) for task in tasks])
            for task, answer in zip(tasks, answers, strict=True):
                self._tell(task, answer)
        except ChannelClosedError:
            self._fail_all(tasks, QueryCancelledError("the reader closed the query"))
        except Exception as error:
            self._fail_all(tasks, _spark_error(error))

    def _collect(self, tasks: list[SparkTask]) -> list[SparkAnswer]:
        self._spark.addJobTag(self._tag)
        self._spark.setJobDescription(f"sparkfusion query {self._job.query}, stage {tasks[0].spec.key.stage}")
        slices = self._spark.parallelize([pickle.dumps(task) for task in tasks], len(tasks))
        return [pickle.loads(answer) for answer in slices.mapPartitions(run_on_executor).collect()]

    def _tell(self, task: HostedTask, answer: SparkAnswer) -> None:
        if answer.error is not None:
            self._driver.failed(task.key, answer.error, streamed=False)
            return
        assert answer.report is not None
        report = _under_key(answer.report, task.key)
        self._memory_used += report.manifest.bytes
        if task.streams:
            for file in report.manifest.files:
                with pa.memory_map(file.path) as source, pa.ipc.open_file(source) as reader:
                    for index in range(reader.num_record_batches):
                        self._channel.put(reader.get_batch(index))
        self._driver.succeeded(report)

    def _fail_all(self, tasks: Sequence[HostedTask], error: Exception) -> None:
        for task in tasks:
            self._driver.failed(task.key, classify(error, task.key), streamed=task.streams)

    def _spark_task(self, task: HostedTask, siblings: int) -> SparkTask:
        left = max(0, self._job.settings.resolved_store_memory() - self._memory_used)
        return SparkTask(
            spec=self.spec(task),
            memory_home=str(self._memory.path) if self._memory is not None and left else "",
            disk_home=str(self._disk.path),
            memory_budget=left // siblings,
            compression=self._job.settings.text("frame_compression"),
        )


def is_local(spark: SparkContext) -> bool:
    """Whether executors are threads of the driver's machine that share its file system."""
    return spark.master.split("[")[0] == "local"


def _under_key(report: TaskReport, key: TaskKey) -> TaskReport:
    return replace(report, key=key, manifest=replace(report.manifest, key=key))


def _spark_error(error: Exception) -> Exception:
    """Spark's error in a few words; the cause inside a Python task's traceback is what the user needs."""
    text = str(getattr(error, "java_exception", "") or error)
    if "cancelled" in text.lower():
        return QueryCancelledError("Spark cancelled the query's jobs")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next((line for line in reversed(lines) if "Error: " in line or "Exception: " in line), lines[0])
    made: Any = ExternalError(f"a Spark task failed: {cause}")
    return made
