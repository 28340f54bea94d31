"""One query on a classic Spark session: every stage is a job of RDD tasks."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pyspark import SparkContext

from sparkfusion.ids import StageId, TableId
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.spark.body import run_on_executor
from sparkfusion.runner.spark.choice import StoreChoice, choose_store
from sparkfusion.runner.spark.classic_tables import ClassicTables
from sparkfusion.runner.spark.environment import check_executors
from sparkfusion.runner.spark.executor_job import ExecutorJob
from sparkfusion.runner.spark.executor_memory import ExecutorBudget
from sparkfusion.runner.spark.feeding import LazyFeedServer
from sparkfusion.runner.spark.file_stores import SparkStore, open_files
from sparkfusion.runner.spark.job_names import describe_job
from sparkfusion.runner.spark.master import attempts_of, is_local
from sparkfusion.runner.spark.reach import check_reach
from sparkfusion.runner.spark.rows import RowPlan
from sparkfusion.runner.spark.shuffle_store import ShuffleStore
from sparkfusion.runner.spark.spark_task import SparkAnswer, StageWiring, TaskWiring, pack_task
from sparkfusion.runner.spark.sql_tab import SqlEntry, has_own_properties
from sparkfusion.runner.spark.tagged_jobs import ClassicJobs
from sparkfusion.runner.spark.task_cpus import profile_for, reserved_cpus, usual_cpus
from sparkfusion.runner.spark.task_news import TaskNews
from sparkfusion.worker.task import TaskOrder


class SparkJob(ExecutorJob):
    """Launches tasks through a Spark context. An accumulator brings news of each finished task."""

    def __init__(
        self,
        spark: SparkContext,
        tables: ClassicTables,
        feeding: LazyFeedServer,
        memory: ExecutorBudget,
        entry: SqlEntry,
    ) -> None:
        job = entry.job
        choice = choose_store(job.settings, spark)
        unsplit = "frames are in Spark's own shuffle" if choice.kind == "spark" else ""
        super().__init__(job, attempts_of(spark), feeding, memory, unsplit=unsplit)
        self._spark = spark
        self._tables = tables
        self._here = is_local(spark)
        self._compression = job.settings.compression(leaves_machine=choice.kind != "local")
        self._store = _open_store(choice, job, spark, self.graph)
        self._jobs = ClassicJobs(spark, f"sparkfusion-{job.query}", self._execution)
        self._entry = entry
        self._news = TaskNews(spark, self._hear)
        self._tables_lock = threading.Lock()
        self._rows_of_stage: dict[StageId, dict[TableId, Any]] = {}
        self._serve_feeds()

    def release(self) -> None:
        self._news.close()
        super().release()

    def _execution(self) -> int | None:
        """The entry of Spark's SQL tab that shows the jobs. Not for a query that reads a DataFrame: in jobs with this
        number, Spark does not apply the session's SQL settings to the DataFrame's rows."""
        reads = any(self._tables.read_by(stage.plan) for stage in self._job.graph.stages)
        return self._entry.execution if has_own_properties() and not reads else None

    def _reads_tables(self, plan: bytes) -> bool:
        return self._tables.read_by(plan)

    def _answers(self, tasks: Sequence[TaskOrder]) -> list[SparkAnswer]:
        check_executors(self._spark)
        work = functools.partial(run_on_executor, self._wiring(tasks))
        stage = self.graph().stage(tasks[0].key.stage)
        with self._jobs.under_way(describe_job(self._job, self.graph(), stage)):
            records, pieces = [], []
            table_rows = self._table_rows(tasks[0].key.stage)
            for task in tasks:
                tables, from_tables = self._tables.inputs(task.plan, table_rows)
                rows, from_tasks = self._store.rows_of(task)
                wiring = TaskWiring(self.graph().stage(task.key.stage).output, rows, tables)
                records.append(pack_task(self._order(task, len(tasks)), wiring))
                pieces.append([*from_tasks, *from_tables])
            profile = profile_for(self._spark, max(task.partitions for task in tasks))
            return self._store.run(RowPlan(self._spark, records, pieces, profile), work, tasks)

    def _memory_limit(self, order: TaskOrder) -> int:
        """Of a wide task, the memory of all slots that it holds."""
        if self._here:
            return super()._memory_limit(order)
        slots = reserved_cpus(self._spark, order.partitions) // usual_cpus(self._spark)
        return self._memory.task_memory(self._job.settings, slots)

    def _table_rows(self, stage: StageId) -> dict[TableId, Any]:
        """The rows of the tables that a stage reads: made once for each stage, for all its jobs and attempts."""
        with self._tables_lock:
            if stage not in self._rows_of_stage:
                self._rows_of_stage[stage] = self._tables.rows(self.graph().stage(stage).plan)
            return self._rows_of_stage[stage]

    def _wiring(self, tasks: Sequence[TaskOrder]) -> StageWiring:
        return replace(super()._wiring(tasks), news=self._news.sender)


def _open_store(choice: StoreChoice, job: QueryJob, spark: SparkContext, graph: Callable[[], StageGraph]) -> SparkStore:
    if choice.kind == "spark":
        return ShuffleStore(spark, job.query, graph, job.settings.integer("small_stage_bytes"))
    if choice.kind == "shared":
        check_reach(spark, choice.directory)
    return open_files(choice, job.query, here=is_local(spark), in_memory=choice.kind == "local")
