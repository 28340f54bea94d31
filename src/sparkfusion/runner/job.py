"""The part of a running query that every runner shares: the driver, and the reader's end of the channel."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from sparkfusion.errors import QueryCancelledError, SparkfusionError, classify
from sparkfusion.exchange.channel import Channel, ChannelClosedError
from sparkfusion.exchange.delivery import Delivery
from sparkfusion.exchange.sink import ChannelSink, Sink
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.ids import TaskKey
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.drive import HostedTask, QueryDriver, start_driver_thread
from sparkfusion.runner.feeds import JobFeeds
from sparkfusion.runner.machine import HEAD, Policy
from sparkfusion.runner.pool import TaskPool
from sparkfusion.worker import open_work
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.limits import memory_share, spill_directory
from sparkfusion.worker.run_task import run_task
from sparkfusion.worker.task import TaskReport, TaskSpec

PATIENCE_SECONDS = 10.0


class DrivenJob(ABC):
    """One query under way: the task host of its driver, and the running job of its reader.

    A runner says how tasks of a stage are started, what an attempt's leftovers are, and what to release at the end.
    Tasks that run in this process (the head's, on every runner) run on the pool here.
    """

    def __init__(self, job: QueryJob, slots: int) -> None:
        self._job = job
        self._channel = Channel(job.settings.integer("channel_frames"))
        self._pool = TaskPool(slots, f"sparkfusion-{job.query}-task")
        self._delivery = Delivery(self._channel)
        self._lock = threading.Lock()
        self._tokens: dict[TaskKey, CancelToken] = {}
        self._driver = QueryDriver(job, policy_of(job))
        self._feeds = JobFeeds(job, self._driver.abort)
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the query. Called once, when the runner's part is ready."""
        self._feeds.book.start()
        open_work.add(self)
        self._thread = start_driver_thread(self._driver, self, f"sparkfusion-{self._job.query}-driver")

    # ---- the reader's side

    def next_frame(self) -> pa.RecordBatch | None:
        try:
            return self._channel.get()
        except ChannelClosedError:
            raise QueryCancelledError("the query was closed while its rows were read") from None

    def cancel(self, reason: str = "the query was cancelled") -> None:
        self._driver.cancel(reason)

    def stop(self) -> None:
        self._channel.close()
        self._driver.cancel("the consumer closed the query")

    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def close(self) -> None:
        self.stop()
        # a forgotten stream is collected on any thread, the driver's own too
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(PATIENCE_SECONDS)

    def reports(self) -> list[TaskReport]:
        return self._driver.reports()

    def feeds(self) -> list[FeedStats]:
        return self._feeds.stats()

    # ---- the driver's side

    @abstractmethod
    def start(self, tasks: Sequence[HostedTask]) -> None: ...

    @abstractmethod
    def discard(self, key: TaskKey) -> None: ...

    @abstractmethod
    def release(self) -> None:
        """Remove what the query made. Called once, when no task runs any more."""

    def stop_tasks(self) -> None:
        """Ask running tasks to end."""
        self._feeds.book.stop()
        with self._lock:
            for token in self._tokens.values():
                token.cancel()

    def end(self, error: SparkfusionError | None) -> None:
        if error is not None:
            self._channel.finish(error)
        try:
            self.stop_tasks()
            self.wait_for_tasks()
            self._feeds.close()
            self.release()
        finally:  # whatever goes wrong here, the reader must not wait for ever
            self._channel.finish(error)

    def wait_for_tasks(self) -> None:
        """Until those that were asked to have ended, or for as long as anybody would wait."""
        self._pool.close(PATIENCE_SECONDS)

    # ---- tasks in this process

    def run_here(self, task: HostedTask, sink: Sink | None = None) -> None:
        """Run a task that reads no feed on the pool of this process. Without a sink its rows go to the reader."""
        self._pool.submit(
            functools.partial(self._run, task, sink or ChannelSink(task.key, self._channel), self._token(task))
        )

    def _token(self, task: HostedTask) -> CancelToken:
        """What cancels the task while it runs."""
        token = CancelToken()
        with self._lock:
            self._tokens[task.key] = token
        return token

    def _run(self, task: HostedTask, sink: Sink, token: CancelToken) -> None:
        try:
            report = run_task(self.spec(task), sink, token, self._job.prepare)
        except BaseException as error:  # a panic in native code must fail the query, not the pool's thread
            streamed = isinstance(sink, ChannelSink) and sink.wrote
            self._driver.failed(task.key, classify(error, task.key), final=streamed)
        else:
            self._driver.succeeded(report)
        finally:
            with self._lock:
                self._tokens.pop(task.key, None)

    def spec(self, task: HostedTask) -> TaskSpec:
        return TaskSpec(
            key=task.key,
            plan=task.plan,
            inputs=task.inputs,
            outputs=task.outputs,
            options=self._job.options,
            memory_limit=task_memory(self._job, alone=task.key.stage == HEAD),
            spill_directory=spill_directory(self._job.settings, self._job.options),
            feed=self._feeds.input(task.feed) if task.feed is not None else None,
        )


def task_memory(job: QueryJob, *, alone: bool) -> int:
    """Bytes for one task; the head has the memory of all slots."""
    return memory_share(job.settings, job.options, alone=alone)


def policy_of(job: QueryJob) -> Policy:
    settings = job.settings
    return Policy(
        retries=settings.integer("task_retries"),
        worker_losses=settings.integer("max_worker_losses"),
        bytes_per_partition=settings.integer("bytes_per_partition"),
        merge_small_partitions=settings.flag("merge_small_partitions"),
    )
