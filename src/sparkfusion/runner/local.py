"""The local runner: tasks run on a bounded pool of threads in this process, each from its own decoded plan."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from pathlib import Path

from sparkfusion.config import Settings
from sparkfusion.exchange.sink import FileSink
from sparkfusion.exchange.store import LocalStore
from sparkfusion.ids import TaskKey
from sparkfusion.runner.base import QueryJob, RunningJob
from sparkfusion.runner.drive import HostedTask
from sparkfusion.runner.job import DrivenJob
from sparkfusion.runner.without_spark import WithoutSpark
from sparkfusion.worker.copy import CopySink


class LocalRunner(WithoutSpark):
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

    def reaches(self, directory: Path) -> bool:
        del directory
        return True

    def shares_files(self, settings: Settings) -> bool:
        del settings
        return True

    def describe(self, settings: Settings) -> str:
        del settings
        return ""

    def close(self) -> None:
        for job in list(self._jobs):
            job.close()


class LocalJob(DrivenJob):
    """One query in this process."""

    def __init__(self, job: QueryJob) -> None:
        settings = job.settings
        super().__init__(job, settings.resolved_slots())
        directory = settings.directory()
        self._store = LocalStore(job.query, memory_budget=settings.resolved_store_memory(), directory=directory)
        self._disk = LocalStore(job.query, memory_budget=0, directory=directory)

    def start(self, tasks: Sequence[HostedTask]) -> None:
        compression = self._job.settings.compression(leaves_machine=False)
        for task in tasks:
            if task.streams and self._job.writes is not None:
                self.run_here(task, CopySink(task.key, self._disk, self._job.writes))
            else:
                self.run_here(task, None if task.streams else FileSink(task.key, self._store, compression))

    def discard(self, key: TaskKey) -> None:
        self._store.discard(key)
        self._disk.discard(key)

    def release(self) -> None:
        self._store.close()
        self._disk.close()
