"""One query on Spark Connect: every stage is a job over a DataFrame of task records."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from dataclasses import replace

from sparkfusion.ids import StageId
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.spark.body import run_on_executor
from sparkfusion.runner.spark.connect.application import ConnectApplication
from sparkfusion.runner.spark.connect.connect_jobs import ConnectJobs
from sparkfusion.runner.spark.connect.connect_tables import ConnectTables
from sparkfusion.runner.spark.connect.task_rows import ConnectRows
from sparkfusion.runner.spark.executor_job import ExecutorJob
from sparkfusion.runner.spark.feeding import LazyFeedServer
from sparkfusion.runner.spark.file_stores import open_files
from sparkfusion.runner.spark.job_names import describe_job
from sparkfusion.runner.spark.spark_task import PartFile, SparkAnswer, TaskWiring, answer_of, pack_task
from sparkfusion.worker.task import TaskOrder


class ConnectJob(ExecutorJob):
    """Launches tasks through a Connect session. Answers arrive in the order of the tasks, while their job runs."""

    def __init__(
        self, job: QueryJob, application: ConnectApplication, tables: ConnectTables, feeding: LazyFeedServer
    ) -> None:
        super().__init__(job, application.attempts, feeding, application.memory)
        self._application = application
        self._tables = tables
        choice = application.choose_store(job.settings)
        if choice.directory:
            application.check_reach(choice.directory)
        self._here = application.is_near()
        self._compression = job.settings.compression(leaves_machine=choice.kind != "local")
        self._store = open_files(choice, job.query, here=self._here, in_memory=False)
        self._jobs = ConnectJobs(application.session, f"sparkfusion-{job.query}")
        self._parts_lock = threading.Lock()
        self._parts_of_stage: dict[StageId, tuple[PartFile, ...] | None] = {}
        self._serve_feeds()

    def _feeds_by_mail(self) -> bool:
        settings = self._job.settings
        if settings.text("feed_transport") != "auto":
            return super()._feeds_by_mail()
        if not settings.text("feed_host"):
            return not self._application.is_near()
        server = self._feeding.server(settings)
        return not self._application.reaches_address(self._feeding.host(settings), server.port)

    def _reads_tables(self, plan: bytes) -> bool:
        return self._tables.read_by(plan)

    def _answers(self, tasks: Sequence[TaskOrder]) -> list[SparkAnswer]:
        self._application.check()
        work = functools.partial(run_on_executor, self._wiring(tasks))
        stage = self.graph().stage(tasks[0].key.stage)
        with self._jobs.under_way(describe_job(self._job, self.graph(), stage)):
            parts = self._parts(tasks)
            records = []
            for task in tasks:
                output = self.graph().stage(task.key.stage).output
                wiring = TaskWiring(output, parts=self._tables.parts_for(task.plan, parts))
                records.append(pack_task(self._order(task, len(tasks)), wiring))
            rows = ConnectRows(self._application.session, records, self._hear_bytes)
            return self._store.run(rows, work, tasks)

    def _hear_bytes(self, answer: bytes) -> None:
        self._hear(answer_of(answer))

    def _parts(self, tasks: Sequence[TaskOrder]) -> tuple[PartFile, ...] | None:
        """The files of the tables that a stage reads: written once for each stage, for all its jobs and attempts."""
        stage = tasks[0].key.stage
        with self._parts_lock:
            if stage not in self._parts_of_stage:
                wiring = replace(self._wiring(tasks), outlet=self._store.outlet(tasks))
                plan = self.graph().stage(stage).plan
                self._parts_of_stage[stage] = self._tables.write_parts(plan, wiring, self._compression)
            return self._parts_of_stage[stage]
