"""The local runner: each query has a worker in this process. Its threads run tasks, each from its own decoded plan."""

from __future__ import annotations

import functools
from pathlib import Path

from sparkfusion.config import Settings, available_cores
from sparkfusion.config.memory_limits import spill_directory
from sparkfusion.live_objects import LiveObjects
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.base import QueryJob, RunningJob
from sparkfusion.runner.coordinated_job import begin_or_cancel, task_memory
from sparkfusion.runner.members import Member
from sparkfusion.runner.pickled_functions import PickledFunctions
from sparkfusion.runner.worker_job import WorkerJob
from sparkfusion.transport.in_process import InProcessChannel
from sparkfusion.transport.process.children import Children
from sparkfusion.transport.process.supervised import GRACE_SECONDS
from sparkfusion.worker.server.guard import OPEN
from sparkfusion.worker.server.rewrites import NamedRewrite, installed_rewrites
from sparkfusion.worker.server.service import WorkerService
from sparkfusion.worker.server.worker_options import WorkerOptions
from sparkfusion.worker.user_functions import OwnFunctions


class LocalRunner:
    """Runs queries in this process. Any number can run at the same time, each with its own worker and coordinator."""

    spark = None
    slots = None
    machines = 1
    cores_per_task = None
    machine_memory = 0

    def __init__(self) -> None:
        self._jobs: LiveObjects[LocalJob] = LiveObjects()
        self._children = Children(available_cores())

    def start(self, job: QueryJob) -> RunningJob:
        children = self._children if job.settings.flag("task_processes") else None
        running = LocalJob(job, self._rewrites, children)
        self._jobs.add(running)
        return begin_or_cancel(running)

    @functools.cached_property
    def _rewrites(self) -> list[NamedRewrite]:
        return installed_rewrites()

    def takes_wide_tasks(self, settings: Settings) -> bool:
        return True

    def reaches(self, directory: Path) -> bool:
        return True

    def shares_files(self, settings: Settings) -> bool:
        return True

    def describe(self, settings: Settings, graph: StageGraph | None = None) -> str:
        return ""

    def close(self) -> None:
        for job in self._jobs:
            job.close()
        self._children.close()


class LocalJob(WorkerJob):
    """One query on a worker of its own."""

    def __init__(self, job: QueryJob, rewrites: list[NamedRewrite], children: Children | None) -> None:
        functions = PickledFunctions()
        if children is not None:
            functions = PickledFunctions.pickle_all(job, "task processes (sparkfusion.task_processes is on)")
        self._service = WorkerService(_options(job, children), rewrites=rewrites)
        super().__init__(job, [Member(InProcessChannel(self._service), self._service.info())], functions, near=True)

    def release(self) -> None:
        super().release()
        self._service.close()


def _options(job: QueryJob, children: Children | None) -> WorkerOptions:
    directory = job.settings.directory()
    return WorkerOptions(
        slots=job.settings.slots_or_default(),
        counts_slots=False,
        directory=directory,
        guard=OPEN,
        spill_directory=spill_directory(job.settings, job.options),
        task_memory=task_memory(job),
        release_seconds=0.0 if children is None else 2 * GRACE_SECONDS,  # on threads they have ended, or never will
        own=OwnFunctions(job.prepare, {each.feed: each.reader for each in job.feeds}),
        children=children,
    )
