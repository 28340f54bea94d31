"""A query on Spark Connect whose rows do not come here: Spark itself reads them from the files of the last tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sparkfusion.errors import InternalError, SparkfusionError
from sparkfusion.ids import SourceFile
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.spark.connect.application import ConnectApplication
from sparkfusion.runner.spark.connect.connect_job import ConnectJob
from sparkfusion.runner.spark.connect.connect_jobs import ConnectJobs
from sparkfusion.runner.spark.connect.connect_tables import ConnectTables
from sparkfusion.runner.spark.feeding import LazyFeedServer
from sparkfusion.runner.spark.spark_task import InPlace, StageWiring
from sparkfusion.worker.task import TaskOrder, TaskReport


class KeptJob(ConnectJob):
    """The head of the query only passes rows on. After a query that did not fail, the files stay until
    `remove_files`."""

    def __init__(
        self, job: QueryJob, application: ConnectApplication, tables: ConnectTables, feeding: LazyFeedServer
    ) -> None:
        super().__init__(job, application, tables, feeding)
        self._files: dict[int, tuple[SourceFile, ...]] = {}
        self._keeps = True

    def end(self, error: SparkfusionError | None) -> None:
        self._keeps = error is None
        super().end(error)

    def remove_files(self) -> None:
        self.close()
        self._store.close()

    @property
    def wiring(self) -> StageWiring:
        store = self._store
        return StageWiring(InPlace(), self._attempts, home=store.home, memory_home="", frames_url=store.frames_url)

    def wait(self) -> tuple[tuple[SourceFile, ...], ...]:
        if self.next_frame() is not None:
            raise InternalError("rows that Spark should keep came to the client")
        return tuple(files for _, files in sorted(self._files.items()) if files)

    @contextmanager
    def run_with_query(self) -> Iterator[None]:
        jobs = ConnectJobs(self._application.session, f"sparkfusion-{self._job.query}-rows")
        try:
            with jobs.under_way(self._job.text):
                yield
        except BaseException:  # Ctrl-C ends the wait, but not the operation
            jobs.interrupt()
            raise

    def _belongs_here(self, tasks: Sequence[TaskOrder]) -> bool:
        return tasks[0].destination != "consumer" and super()._belongs_here(tasks)

    def _release_store(self) -> None:
        if not self._keeps:
            super()._release_store()

    def _pass_on(self, report: TaskReport) -> None:
        files = tuple(SourceFile(file.path, file.bytes) for file in report.manifest.files)
        self._files[report.key.task] = files
