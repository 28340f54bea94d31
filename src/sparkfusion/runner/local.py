"""The local runner: tasks run on a bounded pool of threads in this process, each from its own decoded plan."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from sparkfusion.exchange.sink import FileSink
from sparkfusion.exchange.store import LocalStore
from sparkfusion.ids import TaskKey
from sparkfusion.runner.base import QueryJob, RunningJob
from sparkfusion.runner.drive import HostedTask
from sparkfusion.runner.job import DrivenJob


class LocalRunner:
    """Runs queries in this process. Any number at the same time, each with its own pool, store and driver."""

    name = "local"
    slots = None

    def __init__(self) -> None:
        self._jobs: weakref.WeakSet[LocalJob] = weakref.WeakSet()

    def start(self, job: QueryJob) -> RunningJob:
        running = LocalJob(job)
        self._jobs.add(running)
        running.begin()
        return running

    def close(self) -> None:
        for job in list(self._jobs):
            job.close()


class LocalJob(DrivenJob):
    """One query in this process."""

    def __init__(self, job: QueryJob) -> None:
        settings = job.settings
        super().__init__(job, settings.resolved_slots())
        self._store = LocalStore(
            job.query, memory_budget=settings.resolved_store_memory(), directory=settings.text("store_dir")
        )

    def start(self, tasks: Sequence[HostedTask]) -> None:
        compression = self._job.settings.compression(leaves_machine=False)
        for task in tasks:
            self.run_here(task, None if task.streams else FileSink(task.key, self._store, compression))

    def discard(self, key: TaskKey) -> None:
        self._store.discard(key)

    def release(self) -> None:
        self._store.close()
