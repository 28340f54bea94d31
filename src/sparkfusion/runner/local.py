"""The local runner: tasks run on a bounded pool of threads in this process, each from its own decoded plan."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Sequence

import pyarrow as pa
from datafusion import SessionContext

from sparkfusion.errors import SparkfusionError, classify
from sparkfusion.exchange.channel import Channel
from sparkfusion.exchange.sink import ChannelSink, FileSink, Sink
from sparkfusion.exchange.store import LocalStore
from sparkfusion.ids import TaskKey
from sparkfusion.runner.base import QueryJob, RunningJob
from sparkfusion.runner.drive import HostedTask, QueryDriver, start_driver_thread
from sparkfusion.runner.machine import HEAD, Policy
from sparkfusion.runner.pool import TaskPool
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.run_task import run_task
from sparkfusion.worker.task import TaskReport, TaskSpec

_PATIENCE_SECONDS = 10.0
_MEMORY_LIMIT = "datafusion.runtime.memory_limit"
_TEMP_DIRECTORY = "datafusion.runtime.temp_directory"


class LocalRunner:
    """Runs queries in this process. Any number at the same time, each with its own pool, store and driver."""

    name = "local"

    def __init__(self) -> None:
        self._jobs: weakref.WeakSet[LocalJob] = weakref.WeakSet()

    def start(self, job: QueryJob) -> RunningJob:
        running = LocalJob(job)
        self._jobs.add(running)
        return running

    def close(self) -> None:
        for job in list(self._jobs):
            job.close()


class LocalJob:
    """One query in this process: it is the driver's task host, and the reader's end of the channel."""

    def __init__(self, job: QueryJob) -> None:
        settings = job.settings
        self._job = job
        self._channel = Channel(settings.integer("channel_frames"))
        self._store = LocalStore(
            job.query, memory_budget=settings.resolved_store_memory(), directory=settings.text("store_dir")
        )
        self._pool = TaskPool(settings.resolved_slots(), f"sparkfusion-{job.query}-task")
        self._lock = threading.Lock()
        self._tokens: dict[TaskKey, CancelToken] = {}
        self._driver = QueryDriver(job, policy_of(job))
        self._thread = start_driver_thread(self._driver, self, f"sparkfusion-{job.query}-driver")

    # ---- the reader's side

    def next_frame(self) -> pa.RecordBatch | None:
        return self._channel.get()

    def cancel(self, reason: str = "the query was cancelled") -> None:
        self._driver.cancel(reason)

    def close(self) -> None:
        self._channel.close()
        self._driver.cancel("the reader closed the query")
        self._thread.join(_PATIENCE_SECONDS)

    def reports(self) -> list[TaskReport]:
        return self._driver.reports()

    # ---- the driver's side

    def start(self, tasks: Sequence[HostedTask]) -> None:
        for task in tasks:
            token = CancelToken()
            with self._lock:
                self._tokens[task.key] = token
            self._pool.submit(functools.partial(self._run, task, token))

    def discard(self, key: TaskKey) -> None:
        self._store.discard(key)

    def end(self, error: SparkfusionError | None) -> None:
        if error is not None:
            self._channel.finish(error)
        with self._lock:
            for token in self._tokens.values():
                token.cancel()
        self._pool.close(_PATIENCE_SECONDS)
        self._store.close()
        self._channel.finish(error)

    def _run(self, task: HostedTask, token: CancelToken) -> None:
        key = task.key
        sink: Sink | None = None
        try:
            sink = ChannelSink(key, self._channel) if task.streams else self._file_sink(key)
            report = run_task(self._spec(task), sink, token, self._job.prepare)
        except Exception as error:
            streamed = isinstance(sink, ChannelSink) and sink.wrote
            self._driver.failed(key, classify(error, key), streamed=streamed)
        else:
            self._driver.succeeded(report)
        finally:
            with self._lock:
                self._tokens.pop(key, None)

    def _file_sink(self, key: TaskKey) -> FileSink:
        return FileSink(key, self._store, self._job.settings.text("frame_compression"))

    def _spec(self, task: HostedTask) -> TaskSpec:
        settings = self._job.settings
        return TaskSpec(
            key=task.key,
            plan=task.plan,
            outputs=task.outputs,
            options=self._job.options,
            memory_limit=task_memory(self._job, alone=task.key.stage == HEAD),
            spill_directory=settings.text("store_dir") or self._job.options.get(_TEMP_DIRECTORY, ""),
        )


def task_memory(job: QueryJob, *, alone: bool) -> int:
    """Bytes for one task. A limit that the user set in DataFusion is shared by the slots; the head has them all."""
    slots = job.settings.resolved_slots()
    share = job.settings.resolved_task_memory()
    limit = job.options.get(_MEMORY_LIMIT, "unlimited")
    if limit != "unlimited" and not job.settings.integer("task_memory_bytes"):
        share = SessionContext.parse_capacity_limit(_MEMORY_LIMIT, limit) // slots
    return share * slots if alone else share


def policy_of(job: QueryJob) -> Policy:
    settings = job.settings
    return Policy(
        retries=settings.integer("task_retries"),
        bytes_per_partition=settings.integer("bytes_per_partition"),
        merge_small_partitions=settings.flag("merge_small_partitions"),
    )
