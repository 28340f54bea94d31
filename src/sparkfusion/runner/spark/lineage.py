"""An answer as a Spark DataFrame: the whole stage graph as one Spark lineage, which Spark runs when it needs the rows.

No coordinator watches this: Spark alone computes and recomputes stages, and its shuffle holds the frames. So it is only
for queries whose stages always give the same rows.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sparkfusion.ids import StageId, TaskKey
from sparkfusion.plan.isolate import isolate
from sparkfusion.plan.stage import Stage, StageGraph
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.pickled_functions import PickledFunctions
from sparkfusion.runner.spark.body import run_for_spark, run_on_executor
from sparkfusion.runner.spark.casts import for_spark, table_for_spark
from sparkfusion.runner.spark.classic_tables import ClassicTables
from sparkfusion.runner.spark.environment import check_executors
from sparkfusion.runner.spark.executor_memory import Conf, ExecutorBudget
from sparkfusion.runner.spark.master import attempts_of
from sparkfusion.runner.spark.protection import check_files
from sparkfusion.runner.spark.rows import RowPlan, as_dataset, shuffle
from sparkfusion.runner.spark.spark_task import ProducerAttempt, StageWiring, TaskWiring, ToRows, pack_task
from sparkfusion.runner.spark.spark_types import spark_arrow_schema, spark_schema
from sparkfusion.runner.spark.wiring import Output, wire
from sparkfusion.worker.task import TaskOrder


class DataFrames(ClassicTables):
    """What only a runner on Spark can do: Spark DataFrames as tables of queries, and results as Spark DataFrames."""

    def takes(self, graph: StageGraph) -> bool:
        """A lazy DataFrame may be computed several times."""
        return graph.repeatable

    def __init__(self, session: SparkSession, conf: Conf, memory: ExecutorBudget) -> None:
        super().__init__(session)
        self._conf = conf
        self._memory = memory

    def to_spark(self, job: QueryJob, schema: pa.Schema) -> DataFrame:
        """A DataFrame of that schema over the last stage of a query whose head only passes rows on. It is lazy."""
        check_files(self._conf, job.settings)
        self._memory.check(job.settings)
        check_executors(self._session.sparkContext)
        target = spark_arrow_schema(schema)
        rows = _LineageBuilder(job, self._session, self, self._memory.task_memory(job.settings)).last_rows()
        work = functools.partial(_batches, _wiring(self._session, keyed=False), target)
        return as_dataset(self._session, rows).mapInArrow(work, spark_schema(schema))

    def from_rows(self, rows: pa.Table) -> DataFrame:
        """A DataFrame of rows that are here."""
        made: DataFrame = self._session.createDataFrame(table_for_spark(rows), spark_schema(rows.schema))
        return made


class _LineageBuilder:
    """Builds the lineage stage by stage, producers first."""

    def __init__(self, job: QueryJob, session: SparkSession, tables: ClassicTables, memory: int) -> None:
        self._job = job
        self._graph = job.graph
        self._session = session
        self._spark = session.sparkContext
        self._tables = tables
        self._memory = memory
        self._recipe = PickledFunctions.pickle_all(job, "Spark executors").recipe
        self._outputs: dict[StageId, dict[int, Output]] = {}

    def last_rows(self) -> Any:
        """The rows that each task of the last stage reads."""
        *before, last = self._graph.stages
        for stage in before:
            partitions = self._graph.exchange(stage.output).partitions
            work = functools.partial(run_on_executor, _wiring(self._session, keyed=True))
            shuffled = shuffle(self._spark, self._plan(stage, partitions).run(work), partitions + 1)
            tasks = range(stage.task_count)
            self._outputs[stage.id] = {task: Output(shuffled, ProducerAttempt(task, attempt=0)) for task in tasks}
        return self._plan(last, 1).rows()

    def _plan(self, stage: Stage, partitions: int) -> RowPlan:
        tasks = [isolate(stage, (partition,)) for partition in range(stage.task_count)]
        records, pieces = [], []
        table_rows = self._tables.rows(stage.plan)
        for number, task in enumerate(tasks):
            tables, from_tables = self._tables.inputs(task.plan, table_rows)
            inputs, from_tasks = wire(self._graph, task.groups, self._outputs.__getitem__)
            order = TaskOrder(
                key=TaskKey(self._job.query, stage.id, number),
                plan=task.plan,
                outputs=partitions,
                options=self._job.options,
                compression=self._job.settings.compression(leaves_machine=True),
                memory_limit=self._memory,
                store_memory=0,
                recipe=self._recipe,
            )
            records.append(pack_task(order, TaskWiring(stage.output, inputs, tables)))
            pieces.append([*from_tasks, *from_tables])
        return RowPlan(self._spark, records, pieces)


def _wiring(session: SparkSession, *, keyed: bool) -> StageWiring:
    """The wiring of a stage without directories of the driver: the DataFrame may outlive the session that made it."""
    attempts = attempts_of(session.sparkContext)
    return StageWiring(ToRows(keyed), attempts, home="", memory_home="", answers_errors=False)


def _batches(stage: StageWiring, target: pa.Schema, incoming: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On the executor: records and rows come as binary values, the task's frames leave as Spark's Arrow types."""
    records = (value for batch in incoming for value in batch.column(0).to_pylist())
    for frame in run_for_spark(stage, records):
        yield for_spark(frame, target)
