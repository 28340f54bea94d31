"""One query on Spark: every stage is a job of Python tasks."""

from __future__ import annotations

import functools
import pickle
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import SparkContext

from sparkfusion.config import available_cores
from sparkfusion.errors import InternalError, QueryCancelledError, SparkfusionError, classify
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.sink import FileSink, Sink
from sparkfusion.exchange.store import SHARED_MEMORY
from sparkfusion.exchange.urls import is_url, plain_path
from sparkfusion.feed.address import FeedAddress
from sparkfusion.ids import StageId, TaskKey
from sparkfusion.plan.feeds import FeedId
from sparkfusion.plan.sizing import is_light
from sparkfusion.plan.sources import SourceFile
from sparkfusion.plan.tables import TableId
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.drive import HostedTask
from sparkfusion.runner.job import DrivenJob, task_memory
from sparkfusion.runner.machine import HEAD
from sparkfusion.runner.spark.blame import error_of, spark_error
from sparkfusion.runner.spark.body import run_on_executor
from sparkfusion.runner.spark.choice import StoreChoice, choose_store
from sparkfusion.runner.spark.environment import check_executors
from sparkfusion.runner.spark.feeding import FeedHost
from sparkfusion.runner.spark.inputs import LostOutputError
from sparkfusion.runner.spark.jobs import TaggedJobs
from sparkfusion.runner.spark.master import attempts_of, is_local
from sparkfusion.runner.spark.notices import Notices
from sparkfusion.runner.spark.order import InPlace, RowInput, SparkAnswer, SparkTask, StageOrder, TableInput
from sparkfusion.runner.spark.reach import check_reach
from sparkfusion.runner.spark.rows import RowPlan
from sparkfusion.runner.spark.stores import FileStore, ShuffleStore, TaskStore, UrlStore
from sparkfusion.runner.spark.tables import SparkTables
from sparkfusion.worker.copy import CopySink
from sparkfusion.worker.task import TaskInput, TaskReport, TaskSpec


class SparkJob(DrivenJob):
    """The driver's task host on Spark. The head runs here, over files that the tasks wrote."""

    def __init__(self, job: QueryJob, spark: SparkContext, tables: SparkTables, feeding: FeedHost) -> None:
        self._attempts = attempts_of(spark)
        # threads that wait for Spark jobs or for units must not keep a task here from running
        waiting = len(job.graph.stages) + len(job.feeds)
        super().__init__(job, waiting + available_cores())
        self._spark = spark
        self._tables = tables
        self._choice = choose_store(job.settings, spark)
        self._recipe = job.recipe()
        self._compression = job.settings.compression(leaves_machine=self._choice.kind != "local")
        self._store = _open_store(self._choice, job, spark)
        self._jobs = TaggedJobs(spark, f"sparkfusion-{job.query}")
        self._memory_used = 0
        self._notices = Notices(spark, self._hear)
        self._told_lock = threading.Lock()
        self._waiting: dict[TaskKey, HostedTask] = {}
        self._tables_lock = threading.Lock()
        self._rows_of_stage: dict[StageId, dict[TableId, Any]] = {}
        self._feeding = feeding
        self._feed_address: FeedAddress | None = None
        if job.feeds:
            book, directory = self._feeds.book, self._store.directory
            self._feed_address = feeding.serve(job.query, job.settings, book, self._delivery, directory)

    def start(self, tasks: Sequence[HostedTask]) -> None:
        if tasks[0].key.stage == HEAD:
            self.run_here(tasks[0])
        elif any(task.feed is not None for task in tasks):
            self._pool.submit(functools.partial(self._run_fed_job, tasks))
        elif self._belongs_here(tasks):
            for task in tasks:
                self.run_here(task, self._sink_here(task))
        elif tasks[0].streams and self._job.writes is None and not self._store.readable_at_once:
            # a job for each task, so that its rows flow
            for task in tasks:
                self._pool.submit(functools.partial(self._run_job, [task]))
        else:
            self._pool.submit(functools.partial(self._run_job, tasks))

    def _belongs_here(self, tasks: Sequence[HostedTask]) -> bool:
        """Whether a stage is so small that running it in this process takes less time than starting a Spark job."""
        stage = self._job.graph.stage(tasks[0].key.stage)
        read = stage.scan_bytes + sum(file.size for task in tasks for each in task.inputs for file in each.files)
        if self._store.here is None or read > self._job.settings.integer("small_stage_bytes"):
            return False
        return is_light(stage.plan) and not self._tables.read_by(stage.plan)

    def _sink_here(self, task: HostedTask) -> Sink | None:
        assert self._store.here is not None
        if task.streams:
            writes = self._job.writes
            return CopySink(task.key, self._store.here, writes) if writes is not None else None
        return FileSink(task.key, self._store.here, self._compression)

    def stop_tasks(self) -> None:
        super().stop_tasks()
        self._jobs.stop()

    def spec(self, task: HostedTask) -> TaskSpec:
        """Of a task that runs here. It spills to the query's own directory, which goes whatever happens to the task."""
        spec = super().spec(replace(task, inputs=self._store.brought_here(task.inputs)))
        return replace(spec, spill_directory=self._store.directory)

    def discard(self, key: TaskKey) -> None:
        """Of tasks that ran here. Spark names its attempts itself; what a lost one wrote goes when the query ends."""
        if self._store.here is not None:
            self._store.here.discard(key)

    def release(self) -> None:
        self._feeding.forget(self._job.query)
        self._notices.close()
        self._store.close()

    def _run_fed_job(self, tasks: Sequence[HostedTask]) -> None:
        """A task that waits for units holds a slot of Spark's: it starts when there is something to do for it.

        Tasks that read no feed, in the same stage, do not wait for that.
        """
        unfed = [task for task in tasks if task.feed is None]
        if unfed:
            self._pool.submit(functools.partial(self._run_job, unfed))
        by_feed: dict[FeedId, list[HostedTask]] = {}
        for task in tasks:
            if task.feed is not None:
                by_feed.setdefault(task.feed, []).append(task)
        for feed, fed in list(by_feed.items())[1:]:
            self._pool.submit(functools.partial(self._run_when_fed, feed, fed))
        for feed, fed in list(by_feed.items())[:1]:
            self._run_when_fed(feed, fed)

    def _run_when_fed(self, feed: FeedId, tasks: Sequence[HostedTask]) -> None:
        self._feeds.book[feed].wait_for_work()
        self._run_job(tasks)

    def _run_job(self, tasks: Sequence[HostedTask]) -> None:
        """Run tasks as one Spark job and tell the driver of each; on the pool's thread, must not raise."""
        with self._told_lock:
            self._waiting.update({task.key: task for task in tasks})
        try:
            answers = {answer.key: answer for answer in self._answers(tasks)}
        except Exception as error:
            failure = spark_error(error, [task.key for task in tasks])
            for task in sorted(tasks, key=lambda each: each.key != failure.where):  # the one to blame comes first
                if self._take(task.key):
                    told = classify(error_of(failure, task.key), task.key)
                    self._driver.failed(task.key, told, final=self._attempts > 1)
            return
        for task in tasks:
            if self._take(task.key):
                self._tell(task, answers.get(task.key))

    def _hear(self, answer: SparkAnswer) -> None:
        """A task is done, its job is not. Called on Spark's thread, which no subscriber of ours may hold."""
        self._pool.submit(functools.partial(self._heard, answer))

    def _heard(self, answer: SparkAnswer) -> None:
        task = self._waiting.get(answer.key)
        if task is None:
            return
        if answer.report is not None and not self._store.readable_at_once:
            self._driver.announce(_under_key(answer.report, task.key))
        elif self._take(task.key):
            self._tell(task, answer)

    def _take(self, key: TaskKey) -> bool:
        """Whether the driver has still to be told of this task; the caller does it."""
        with self._told_lock:
            return self._waiting.pop(key, None) is not None

    def _answers(self, tasks: Sequence[HostedTask]) -> list[SparkAnswer]:
        check_executors(self._spark)
        work = functools.partial(run_on_executor, self._order(tasks))
        with self._jobs.under_way(f"sparkfusion query {self._job.query}, stage {tasks[0].key.stage}"):
            records, pieces = [], []
            table_rows = self._table_rows(tasks[0].key.stage)
            for task in tasks:
                found = self._tables.inputs(task.plan, table_rows)
                rows, from_tasks = self._store.rows_of(task)
                records.append(pickle.dumps(self._spark_task(task, rows, found.tables, len(tasks))))
                pieces.append([*from_tasks, *found.pieces])
            return self._store.run(RowPlan(self._spark, records, pieces), work, tasks)

    def _table_rows(self, stage: StageId) -> dict[TableId, Any]:
        """Made once for a stage, however many jobs and attempts it takes."""
        with self._tables_lock:
            if stage not in self._rows_of_stage:
                self._rows_of_stage[stage] = self._tables.rows(self._job.graph.stage(stage).plan)
            return self._rows_of_stage[stage]

    def _order(self, tasks: Sequence[HostedTask]) -> StageOrder:
        left = self._memory_left()
        writes = self._job.writes if tasks[0].streams else None
        return StageOrder(
            options=self._job.options,
            destination=self._store.destination(tasks) if writes is None else InPlace(),
            attempts=self._attempts,
            home=self._store.home,
            memory_home=self._store.memory_home if left else "",
            compression=self._compression,
            frames_url=self._store.frames_url,
            prepare=self._recipe,
            writes=writes,
            news=self._notices.sender,
            feeds=self._feed_address,
            readers={each.feed: each.reader for each in self._job.feeds if each.reader is not None},
        )

    def _spark_task(
        self, task: HostedTask, rows: tuple[RowInput, ...], tables: tuple[TableInput, ...], siblings: int
    ) -> SparkTask:
        return SparkTask(
            key=task.key,
            plan=task.plan,
            output=self._job.graph.stage(task.key.stage).output,
            outputs=task.outputs,
            inputs=() if rows else task.inputs,
            rows=rows,
            tables=tables,
            memory_limit=task_memory(self._job, alone=False) if is_local(self._spark) else self._chosen_memory(),
            memory_budget=self._memory_left() // siblings,
            feed=self._feeds.input(task.feed) if task.feed is not None else None,
            streams=task.streams and self._job.writes is None,
        )

    def _chosen_memory(self) -> int:
        """What the user set for a task; 0 leaves it to the executor's machine."""
        return self._job.settings.integer("task_memory_bytes")

    def _memory_left(self) -> int:
        return max(0, self._job.settings.resolved_store_memory() - self._memory_used)

    def _tell(self, task: HostedTask, answer: SparkAnswer | None) -> None:
        """Tell the driver how a task ended; must not raise. Rows for the reader may wait for it."""
        streamed = False
        try:
            if answer is None:
                raise InternalError("Spark gave no answer for a task")
            if answer.error is not None:
                self._tell_error(task, answer.error)
                return
            assert answer.report is not None
            report = _under_key(answer.report, task.key)
            self._memory_used += _bytes_in_memory(report)
            if task.streams and self._job.writes is None and task.feed is None:
                streamed = True
                self._pass_on(report)
            self._driver.succeeded(report)
        except ChannelClosedError:
            self._driver.failed(task.key, QueryCancelledError("the consumer closed the query"), final=True)
        except Exception as error:
            self._driver.failed(task.key, classify(error, task.key), final=streamed)

    def _tell_error(self, task: HostedTask, error: SparkfusionError) -> None:
        if isinstance(error, LostOutputError):
            self._driver.lost(error.stage, error.task, error.attempt)
        error.where = task.key  # Spark counts attempts over all its tasks
        self._driver.failed(task.key, error, final=self._attempts > 1)

    def _pass_on(self, report: TaskReport) -> None:
        """Give a finished task's rows to the reader; nobody else reads its files."""
        files = tuple(SourceFile(file.path, file.bytes) for file in report.manifest.files)
        (rows,) = self._store.brought_here((TaskInput(0, 0, files),))
        for file in rows.files:
            with pa.memory_map(file.path) as source, pa.ipc.open_file(source) as reader:
                for index in range(reader.num_record_batches):
                    self._channel.put(reader.get_batch(index))
            Path(file.path).unlink()


def _open_store(choice: StoreChoice, job: QueryJob, spark: SparkContext) -> TaskStore:
    if choice.kind == "spark":
        return ShuffleStore(spark, job.query, job.graph)
    if choice.kind == "shared":
        check_reach(spark, choice.directory)
    if is_url(choice.directory):
        return UrlStore(spark, job.query, choice.directory)
    directory = plain_path(choice.directory) if choice.directory else ""
    return FileStore(spark, job.query, directory, in_memory=choice.kind == "local" and not directory)


def _bytes_in_memory(report: TaskReport) -> int:
    home = f"{SHARED_MEMORY}/"
    return sum(file.bytes for file in report.manifest.files if file.path.startswith(home))


def _under_key(report: TaskReport, key: TaskKey) -> TaskReport:
    return replace(report, key=key, manifest=replace(report.manifest, key=key))
