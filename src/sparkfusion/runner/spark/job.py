"""One query on Spark: every stage is a job of Python tasks."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext

from sparkfusion.errors import InternalError, QueryCancelledError, SparkfusionError, classify
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.store import SHARED_MEMORY
from sparkfusion.ids import TaskKey
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.drive import HostedTask
from sparkfusion.runner.job import DrivenJob, task_memory
from sparkfusion.runner.machine import HEAD
from sparkfusion.runner.spark.blame import spark_error
from sparkfusion.runner.spark.body import run_on_executor
from sparkfusion.runner.spark.choice import StoreChoice, choose_store
from sparkfusion.runner.spark.inputs import LostOutputError
from sparkfusion.runner.spark.jobs import TaggedJobs
from sparkfusion.runner.spark.master import attempts_of, is_local
from sparkfusion.runner.spark.order import SparkAnswer, SparkTask, StageOrder
from sparkfusion.runner.spark.rows import RowPlan
from sparkfusion.runner.spark.stores import FileStore, ShuffleStore, TaskStore
from sparkfusion.worker.task import TaskReport


class SparkJob(DrivenJob):
    """The driver's task host on Spark. The head runs here, over files that the tasks wrote."""

    def __init__(self, job: QueryJob, spark: SparkContext) -> None:
        self._attempts = attempts_of(spark)
        super().__init__(_left_to_spark(job) if self._attempts > 1 else job, max(2, spark.defaultParallelism))
        self._spark = spark
        self._choice = choose_store(job.settings, spark)
        self._store = _open_store(self._choice, job, spark)
        self._jobs = TaggedJobs(spark, f"sparkfusion-{job.query}")
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
        self._jobs.stop()

    def discard(self, key: TaskKey) -> None:
        """Attempts are named by Spark; what a lost one wrote goes when the query ends."""

    def release(self) -> None:
        self._store.close()

    def _run_job(self, tasks: Sequence[HostedTask]) -> None:
        """Run tasks as one Spark job and tell the driver of each; on the pool's thread, must not raise."""
        told = 0
        try:
            answers = {answer.key: answer for answer in self._answers(tasks)}
            for task in tasks:
                told += 1
                self._tell(task, answers.get(task.key))
        except ChannelClosedError:
            self._fail_all(tasks, QueryCancelledError("the reader closed the query"), streamed=True)
        except Exception as error:
            self._fail_all(tasks, spark_error(error, [task.key for task in tasks]), streamed=told > 0)

    def _answers(self, tasks: Sequence[HostedTask]) -> list[SparkAnswer]:
        order = self._order(tasks)
        records, pieces = [], []
        for task in tasks:
            rows, found = self._store.rows_of(task)
            made = self._spark_task(task, len(tasks))
            records.append(pickle.dumps(replace(made, rows=rows, inputs=() if rows else task.inputs)))
            pieces.append(found)
        plan = RowPlan(self._spark, records, pieces)
        with self._jobs.under_way(f"sparkfusion query {self._job.query}, stage {tasks[0].key.stage}"):
            return self._store.run(plan, functools.partial(run_on_executor, order), tasks)

    def _order(self, tasks: Sequence[HostedTask]) -> StageOrder:
        left = self._memory_left()
        return StageOrder(
            options=self._job.options,
            destination=self._store.destination(tasks),
            attempts=self._attempts,
            home=self._store.home,
            memory_home=self._store.memory_home if left else "",
            compression=self._job.settings.compression(leaves_machine=self._choice.kind != "local"),
        )

    def _spark_task(self, task: HostedTask, siblings: int) -> SparkTask:
        return SparkTask(
            key=task.key,
            plan=task.plan,
            output=self._job.graph.stage(task.key.stage).output,
            outputs=task.outputs,
            inputs=(),
            rows=(),
            memory_limit=task_memory(self._job, alone=False) if is_local(self._spark) else self._chosen_memory(),
            memory_budget=self._memory_left() // siblings,
        )

    def _chosen_memory(self) -> int:
        """What the user set for a task; 0 leaves it to the executor's machine."""
        return self._job.settings.integer("task_memory_bytes")

    def _memory_left(self) -> int:
        return max(0, self._job.settings.resolved_store_memory() - self._memory_used)

    def _tell(self, task: HostedTask, answer: SparkAnswer | None) -> None:
        if answer is None:
            raise InternalError("Spark gave no answer for a task", where=task.key)
        if answer.error is not None:
            if isinstance(answer.error, LostOutputError):
                self._driver.lost(answer.error.stage, answer.error.task, answer.error.attempt)
            answer.error.where = task.key  # Spark counts attempts over all its tasks
            self._driver.failed(task.key, answer.error, streamed=False)
            return
        assert answer.report is not None
        report = _under_key(answer.report, task.key)
        self._memory_used += _bytes_in_memory(report)
        if task.streams:
            self._pass_on(report)
        self._driver.succeeded(report)

    def _pass_on(self, report: TaskReport) -> None:
        """Give a finished task's rows to the reader; nobody else reads its files."""
        for file in report.manifest.files:
            with pa.memory_map(file.path) as source, pa.ipc.open_file(source) as reader:
                for index in range(reader.num_record_batches):
                    self._channel.put(reader.get_batch(index))
            Path(file.path).unlink()

    def _fail_all(self, tasks: Sequence[HostedTask], error: SparkfusionError, *, streamed: bool) -> None:
        for task in tasks:
            self._driver.failed(task.key, classify(error, task.key), streamed=streamed and task.streams)


def _open_store(choice: StoreChoice, job: QueryJob, spark: SparkContext) -> TaskStore:
    if choice.kind == "spark":
        return ShuffleStore(spark, job.query, job.graph)
    return FileStore(spark, job.query, choice.directory, in_memory=choice.kind == "local" and not choice.directory)


def _left_to_spark(job: QueryJob) -> QueryJob:
    """The job without retries of ours: Spark tries a task several times itself, and both would multiply."""
    settings = job.settings.copy()
    settings.set("sparkfusion.task_retries", 0)
    return replace(job, settings=settings)


def _bytes_in_memory(report: TaskReport) -> int:
    home = f"{SHARED_MEMORY}/"
    return sum(file.bytes for file in report.manifest.files if file.path.startswith(home))


def _under_key(report: TaskReport, key: TaskKey) -> TaskReport:
    return replace(report, key=key, manifest=replace(report.manifest, key=key))
