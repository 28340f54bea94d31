"""One query on executors of Spark: every stage is a job of Python tasks. How a job starts depends on the session."""

from __future__ import annotations

import functools
import threading
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from sparkfusion.config import available_cores
from sparkfusion.errors import (
    InternalError,
    LostInputError,
    QueryCancelledError,
    SparkfusionError,
    UserError,
    classify,
)
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.store import SHARED_MEMORY
from sparkfusion.ids import FeedId, SourceFile, StageId, TaskKey
from sparkfusion.plan.sizing import is_light
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.coordinated_job import CLOSED_BY_CONSUMER, CoordinatedJob, task_memory
from sparkfusion.runner.pickled_functions import PickledFunctions
from sparkfusion.runner.query_state import HEAD
from sparkfusion.runner.spark.executor_memory import ExecutorBudget
from sparkfusion.runner.spark.feed_address import FeedAddress, MailAddress
from sparkfusion.runner.spark.feeding import LazyFeedServer, served_query
from sparkfusion.runner.spark.file_stores import SparkStore
from sparkfusion.runner.spark.mail.mail_server import MailServer
from sparkfusion.runner.spark.spark_errors import error_of, spark_error
from sparkfusion.runner.spark.spark_task import InPlace, SparkAnswer, StageWiring
from sparkfusion.runner.spark.tagged_jobs import TaggedJobs
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskStores
from sparkfusion.worker.task import Fetched, TaskInput, TaskOrder, TaskReport
from sparkfusion.worker.task_context import Surroundings


class ExecutorJob(CoordinatedJob):
    """Launches tasks as jobs of a Spark session, and reports how they end. The head runs here, over files that the
    tasks wrote.

    A subclass sets the store and the tagged jobs, then calls `_serve_feeds`. It runs a job in `_answers`.

    Attributes:
        _attempts: how many attempts Spark itself makes at a task.
        _here: tasks run on this machine.
    """

    _store: SparkStore
    _jobs: TaggedJobs
    _here: bool
    _compression: str

    def __init__(
        self, job: QueryJob, attempts: int, feeding: LazyFeedServer, memory: ExecutorBudget, *, unsplit: str = ""
    ) -> None:
        # threads that wait for Spark jobs or for units must not keep a task here from running
        waiting = len(job.graph.stages) + len(job.feeds)
        super().__init__(job, waiting + available_cores(), unsplit=unsplit)
        self._attempts = attempts
        self._functions = PickledFunctions.pickle_all(job, "Spark executors")
        self._memory_used = 0
        self._tasks_lock = threading.Lock()
        self._waiting: dict[TaskKey, TaskOrder] = {}
        self._is_small: dict[StageId, bool] = {}
        self._feeding = feeding
        self._memory = memory
        self._feed_address: FeedAddress | MailAddress | None = None
        self._mail: MailServer | None = None

    def _serve_feeds(self) -> None:
        job = self._job
        if not job.feeds:
            return
        served = served_query(self._feeds.book, self._delivery, self._store.directory)
        if not self._feeds_by_mail():
            self._feed_address = self._feeding.serve(job.query, job.settings, served)
            return
        if not self._store.mailbox:
            raise UserError(
                "sparkfusion.feed_transport is mailbox, but the frames of this query are not in files",
                hint="set sparkfusion.store to shared, and sparkfusion.store_dir to a place that executors reach",
            )
        self._mail = MailServer(self._store.mailbox, job.query, served, self._coordinator.abort)
        self._feed_address = self._mail.address

    def _feeds_by_mail(self) -> bool:
        """Whether tasks get their units through files of the store, and not from a server in this process."""
        return self._job.settings.text("feed_transport") == "mailbox"

    @abstractmethod
    def _answers(self, tasks: Sequence[TaskOrder]) -> list[SparkAnswer]:
        """Run tasks of one stage as one job, to its end."""

    @abstractmethod
    def _reads_tables(self, plan: bytes) -> bool:
        """Whether the plan reads a registered DataFrame."""

    def start(self, orders: Sequence[TaskOrder]) -> None:
        if orders[0].key.stage == HEAD:
            self.run_here(orders[0])
        elif any(order.feed is not None for order in orders):
            self._pool.submit(functools.partial(self._run_fed_job, orders))
        elif self._belongs_here(orders):
            self._store.expect_here(orders[0].key.stage)
            for order in orders:
                self.run_here(order)
        elif orders[0].destination == "consumer" and not self._store.readable_at_once:
            # a job for each task, so that its rows flow
            for order in orders:
                self._pool.submit(functools.partial(self._run_job, [order]))
        else:
            self._pool.submit(functools.partial(self._run_job, orders))

    def _belongs_here(self, tasks: Sequence[TaskOrder]) -> bool:
        """Whether a stage is so small that running it in this process takes less time than starting a Spark job.

        Decided once for each stage, so that all outputs of a stage are in one place. The coordinator's thread."""
        stage = self.graph().stage(tasks[0].key.stage)
        if stage.id not in self._is_small:
            read = stage.scan_bytes + sum(file.size for task in tasks for each in task.inputs for file in each.files)
            small = read <= self._job.settings.integer("small_stage_bytes") and self._store.may_run_here(stage.inputs)
            self._is_small[stage.id] = small and is_light(stage.plan) and not self._reads_tables(stage.plan)
        return self._is_small[stage.id]

    def stop_tasks(self) -> None:
        super().stop_tasks()
        self._jobs.stop()

    def bring(self, order: TaskOrder, cancel: CancelToken) -> tuple[TaskOrder, tuple[Fetched, ...]]:
        return replace(order, inputs=self._store.bring_here(order.inputs), compression=self._compression), ()

    def stores(self) -> TaskStores | None:
        here = self._store.here
        return TaskStores(here, here) if here is not None else None

    def surroundings(self, order: TaskOrder) -> Surroundings:
        """The task spills to the query's own directory, which is always removed."""
        return replace(super().surroundings(order), spill_directory=self._store.directory)

    def discard(self, key: TaskKey) -> None:
        """Remove the files of a task that ran here. Spark numbers its attempts itself; what a lost attempt wrote is
        removed when the query ends."""
        if self._store.here is not None:
            self._store.here.discard(key)

    def release(self) -> None:
        self._feeding.forget(self._job.query)
        if self._mail is not None:
            self._mail.close()
        self._release_store()

    def _release_store(self) -> None:
        self._store.close()

    def _run_fed_job(self, tasks: Sequence[TaskOrder]) -> None:
        """Start each task when there are units for it: a task that waits for units would hold one of Spark's slots.

        Tasks of the same stage that read no feed start at once.
        """
        unfed = [task for task in tasks if task.feed is None]
        if unfed:
            self._pool.submit(functools.partial(self._run_job, unfed))
        by_feed: dict[FeedId, list[TaskOrder]] = {}
        for task in tasks:
            if task.feed is not None:
                by_feed.setdefault(task.feed.feed, []).append(task)
        for feed, fed in list(by_feed.items())[1:]:
            self._pool.submit(functools.partial(self._run_when_fed, feed, fed))
        for feed, fed in list(by_feed.items())[:1]:
            self._run_when_fed(feed, fed)

    def _run_when_fed(self, feed: FeedId, tasks: Sequence[TaskOrder]) -> None:
        self._feeds.book[feed].wait_for_work()
        self._run_job(tasks)

    def _run_job(self, tasks: Sequence[TaskOrder]) -> None:
        """Run tasks as one Spark job and report each to the coordinator. Runs on the pool and must not raise."""
        with self._tasks_lock:
            self._waiting.update({task.key: task for task in tasks})
        try:
            answers = {answer.key: answer for answer in self._answers(tasks)}
        except Exception as error:
            failure = spark_error(error, [task.key for task in tasks])
            for task in sorted(tasks, key=lambda each: each.key != failure.where):  # the one to blame comes first
                if self._take(task.key):
                    told = classify(error_of(failure, task.key), task.key)
                    self._coordinator.report_failure(task.key, told, final=self._attempts > 1)
            return
        for task in tasks:
            if self._take(task.key):
                self._tell(task, answers.get(task.key))

    def _hear(self, answer: SparkAnswer) -> None:
        """A task is done while its job still runs. Called on a thread of Spark, which subscribers must not block."""
        self._pool.submit(functools.partial(self._on_answer, answer))

    def _on_answer(self, answer: SparkAnswer) -> None:
        task = self._waiting.get(answer.key)
        if task is None:
            return
        if answer.report is not None and not self._store.readable_at_once:
            self._coordinator.announce(_under_key(answer.report, task.key))
        elif self._take(task.key):
            self._tell(task, answer)

    def _take(self, key: TaskKey) -> bool:
        """Whether this task still has to be reported to the coordinator; the caller then does it."""
        with self._tasks_lock:
            return self._waiting.pop(key, None) is not None

    def _wiring(self, tasks: Sequence[TaskOrder]) -> StageWiring:
        return StageWiring(
            outlet=self._store.outlet(tasks) if tasks[0].writes is None else InPlace(),
            attempts=self._attempts,
            home=self._store.home,
            memory_home=self._store.memory_home if self._memory_left() else "",
            frames_url=self._store.frames_url,
            feeds=self._feed_address,
            carried=self._store.carried_inputs(tasks),
        )

    def _order(self, order: TaskOrder, siblings: int) -> TaskOrder:
        """The order as an executor gets it. Only rows of a feed go to the consumer while their task runs."""
        return replace(
            order,
            inputs=self._store.files_of(order),
            destination=order.destination if order.feed is not None else "store",
            compression=self._compression,
            memory_limit=self._memory_limit(order),
            store_memory=self._memory_left() // siblings,
            reader=self._functions.readers.get(order.feed.feed) if order.feed is not None else None,
            recipe=self._functions.recipe,
        )

    def _memory_limit(self, order: TaskOrder) -> int:
        """The memory limit of a task. On other machines, the user's or the one that Spark's settings leave; 0 leaves it
        to the executor's machine."""
        if self._here:
            return task_memory(self._job, partitions=order.partitions)
        return self._memory.task_memory(self._job.settings)

    def _memory_left(self) -> int:
        return max(0, self._job.settings.store_memory_or_default() - self._memory_used)

    def _tell(self, task: TaskOrder, answer: SparkAnswer | None) -> None:
        """Report to the coordinator how a task ended; must not raise. May wait until the consumer has taken rows."""
        streamed = False
        try:
            if answer is None:
                raise InternalError("Spark gave no answer for a task")
            if answer.error is not None:
                self._tell_error(task, answer.error)
                return
            assert answer.report is not None
            report = _under_key(answer.report, task.key)
            with self._tasks_lock:
                self._memory_used += _bytes_in_memory(report)
            if task.destination == "consumer" and task.feed is None:
                streamed = True
                self._pass_on(report)
            self._coordinator.report_success(report)
        except ChannelClosedError:
            self._coordinator.report_failure(task.key, QueryCancelledError(CLOSED_BY_CONSUMER), final=True)
        except Exception as error:
            self._coordinator.report_failure(task.key, classify(error, task.key), final=streamed)

    def _tell_error(self, task: TaskOrder, error: SparkfusionError) -> None:
        if isinstance(error, LostInputError):
            for stage, number, attempt in error.lost:
                self._coordinator.report_lost_output(stage, number, attempt)
        error.where = task.key  # Spark counts attempts over all its tasks
        self._coordinator.report_failure(task.key, error, final=self._attempts > 1)

    def _pass_on(self, report: TaskReport) -> None:
        """Give a finished task's rows to the consumer; no other task reads its files."""
        files = tuple(SourceFile(file.path, file.bytes) for file in report.manifest.files)
        (rows,) = self._store.bring_here((TaskInput(0, 0, files),))
        for file in rows.files:
            with pa.memory_map(file.path) as source, pa.ipc.open_file(source) as reader:
                for index in range(reader.num_record_batches):
                    self._channel.put(reader.get_batch(index))
            Path(file.path).unlink()


def _bytes_in_memory(report: TaskReport) -> int:
    home = f"{SHARED_MEMORY}/"
    return sum(file.bytes for file in report.manifest.files if file.path.startswith(home))


def _under_key(report: TaskReport, key: TaskKey) -> TaskReport:
    return replace(report, key=key, manifest=replace(report.manifest, key=key))
