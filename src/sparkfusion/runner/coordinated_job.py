"""The part of a running query that every runner shares: its coordinator, and the consumer's end of the channel."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from sparkfusion.config import task_share
from sparkfusion.config.memory_limits import memory_share, spill_directory
from sparkfusion.errors import QueryCancelledError, SparkfusionError, classify
from sparkfusion.exchange.channel import Channel
from sparkfusion.exchange.delivery import Delivery
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.ids import TaskKey
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.coordinate import QueryCoordinator
from sparkfusion.runner.job_feeds import JobFeeds
from sparkfusion.runner.pool import TaskPool
from sparkfusion.runner.query_state import HEAD, Policy
from sparkfusion.worker import open_work
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds, TaskStores, carry_out
from sparkfusion.worker.task import Fetched, TaskOrder, TaskReport
from sparkfusion.worker.task_context import Surroundings
from sparkfusion.worker.user_functions import OwnFunctions

J = TypeVar("J", bound="CoordinatedJob")
CLOSE_SECONDS = 10.0
CLOSED_BY_CONSUMER = "the consumer closed the query"


class CoordinatedJob(ABC):
    """One running query: it launches tasks for its coordinator, and gives rows to its consumer.

    A runner defines how tasks of a stage are started, how the files of an attempt are removed, and what to release at
    the end. Tasks that run in this process (the head on every runner) run on the pool here.

    Args:
        unsplit: why no partition can be split on this runner; empty if it can.
    """

    def __init__(self, job: QueryJob, slots: int, *, unsplit: str = "") -> None:
        self._job = job
        self._channel = Channel(job.settings.integer("channel_frames"))
        self._pool = TaskPool(slots, f"sparkfusion-{job.query}-task")
        self._delivery = Delivery(self._channel)
        self._lock = threading.Lock()
        self._tokens: dict[TaskKey, CancelToken] = {}
        self._coordinator = QueryCoordinator(job, policy_of(job, unsplit))
        self._feeds = JobFeeds(job, self._coordinator.abort)
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the query. Called once, when the runner is ready."""
        self._feeds.book.start()
        open_work.add(self)
        name = f"sparkfusion-{self._job.query}-coordinator"
        self._thread = threading.Thread(target=self._coordinator.run, args=(self,), name=name, daemon=True)
        self._thread.start()

    # ---- the consumer's side

    def next_frame(self) -> pa.RecordBatch | None:
        return self._channel.next_frame()

    def cancel(self, reason: str = "the query was cancelled") -> None:
        self._coordinator.cancel(reason)

    def stop(self) -> None:
        self._channel.close()
        self._coordinator.cancel(CLOSED_BY_CONSUMER)

    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def close(self) -> None:
        self.stop()
        if self._thread is not None and not self._is_on_its_own_thread():
            self._thread.join(CLOSE_SECONDS)

    def _is_on_its_own_thread(self) -> bool:
        """Whether this is a thread that the coordinator waits for, or the coordinator's: a subscriber may close the
        query when it hears of an event."""
        return threading.current_thread() is self._thread or self._pool.is_on_its_own_thread()

    def reports(self) -> list[TaskReport]:
        return self._coordinator.reports()

    def graph(self) -> StageGraph:
        return self._coordinator.graph

    def feeds(self) -> list[FeedStats]:
        return self._feeds.stats()

    # ---- the coordinator's side

    @abstractmethod
    def start(self, orders: Sequence[TaskOrder]) -> None: ...

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
        finally:  # whatever goes wrong here, the consumer must not wait for ever
            self._channel.finish(error)
            self._job.ended(error)

    def wait_for_tasks(self) -> None:
        """Wait until the tasks that were asked to end have ended, at most `CLOSE_SECONDS`."""
        self._pool.close(CLOSE_SECONDS)

    # ---- tasks in this process

    def run_here(self, order: TaskOrder) -> None:
        """Run a task that reads no feed on the pool of this process."""
        self._pool.submit(functools.partial(self._run, order, self._token(order.key)))

    def _token(self, key: TaskKey) -> CancelToken:
        """The token that cancels the task."""
        token = CancelToken()
        with self._lock:
            self._tokens[key] = token
        return token

    def _run(self, order: TaskOrder, token: CancelToken) -> None:
        self._coordinator.note_start(order.key, "")
        streamed = False

        def pass_on(frame: pa.RecordBatch) -> None:
            nonlocal streamed
            streamed = True
            self._channel.put(frame)

        try:
            ends, own = TaskEnds(pass_on), OwnFunctions(self._job.prepare)
            brought, fetched = self.bring(order, token)
            report = carry_out(brought, self.surroundings(order), self.stores(), ends, token, own)
        except BaseException as error:  # a panic in native code must fail the query, not the pool's thread
            self._coordinator.report_failure(order.key, classify(error, order.key), final=streamed)
        else:
            self._coordinator.report_success(replace(report, fetched=fetched))
        finally:
            with self._lock:
                self._tokens.pop(order.key, None)

    def bring(self, order: TaskOrder, cancel: CancelToken) -> tuple[TaskOrder, tuple[Fetched, ...]]:
        """The order of a task that runs here, with its inputs in files of this machine, and what had to be fetched."""
        return order, ()

    def stores(self) -> TaskStores | None:
        """Where tasks that run here write; None if only the head runs here, whose rows go to the consumer."""
        return None

    def surroundings(self, order: TaskOrder) -> Surroundings:
        """The memory limit and spill directory of a task that runs here."""
        job = self._job
        alone = order.key.stage == HEAD
        memory = task_memory(job, alone=True) if alone else task_memory(job, partitions=order.partitions)
        return Surroundings(memory, spill_directory(job.settings, job.options))


def task_memory(job: QueryJob, *, alone: bool = False, partitions: int = 1) -> int:
    """Bytes for a task of this many partitions: the memory of as many slots. With `alone`, the memory of all slots, for
    the head."""
    share = memory_share(job.settings, job.options, alone=alone)
    return share if alone else task_share(partitions, job.settings.slots_or_default(), share)


def policy_of(job: QueryJob, unsplit: str = "") -> Policy:
    settings = job.settings
    return Policy(
        retries=settings.integer("task_retries"),
        worker_losses=settings.integer("max_worker_losses"),
        bytes_per_partition=settings.integer("bytes_per_partition"),
        merge_small_partitions=settings.flag("merge_small_partitions"),
        adaptive_broadcast_bytes=settings.integer("adaptive_broadcast_bytes"),
        key_set_bytes=settings.integer("key_set_bytes"),
        skew_bytes=settings.integer("skew_bytes"),
        skip_empty_stages=settings.flag("skip_empty_stages"),
        swap_factor=settings.integer("swap_factor"),
        unsplit=unsplit,
        task_memory=task_memory(job),
        max_plan_bytes=settings.integer("max_plan_bytes"),
    )


def begin_or_cancel(job: J) -> J:
    """Start the job and return it. If it cannot start, for example after Ctrl-C, it is cancelled and leaves nothing."""
    try:
        job.begin()
    except BaseException:
        job.cancel("the query was interrupted before it started")
        if job.is_running():
            job.close()
        else:
            job.end(QueryCancelledError("the query was interrupted before it started"))
        raise
    return job
