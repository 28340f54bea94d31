"""The store that is Spark's own shuffle."""

from __future__ import annotations

import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext

from sparkfusion.exchange.chunks import ChunkSpool, Origin, is_chunk
from sparkfusion.exchange.manifest import Manifest
from sparkfusion.exchange.store import FrameStore
from sparkfusion.ids import ExchangeId, QueryId, StageId
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.spark.file_stores import FileStore, PlannedRows, SparkStore, TaskFunction
from sparkfusion.runner.spark.master import is_local
from sparkfusion.runner.spark.rows import Piece, RowPlan, Shuffled, collect, forget, shuffle
from sparkfusion.runner.spark.spark_task import CarriedInput, Outlet, RowInput, Source, SparkAnswer, ToRows, answer_of
from sparkfusion.runner.spark.wiring import Output, wire
from sparkfusion.worker.task import TaskInput, TaskOrder


class ShuffleStore(SparkStore):
    """Frames are rows of Spark's own shuffle, which keeps them on the executors and recomputes lost ones.

    A stage is computed by a job that reads only one small partition, with the tasks' answers. Frames that the driver
    itself reads (the head's inputs, rows for the consumer) come with the answers and are written to files here.
    """

    readable_at_once = False
    here: FrameStore  # of tasks that read only what is here; their frames are sent with the tasks that read them

    def __init__(self, spark: SparkContext, query: QueryId, graph: Callable[[], StageGraph]) -> None:
        self._spark = spark
        self._graph = graph
        self._files = FileStore(query, "", in_memory=is_local(spark), here=is_local(spark))
        self.directory = self._files.directory
        self.home, self.memory_home = self._files.home, self._files.memory_home
        assert self._files.here is not None
        self.here = self._files.here
        self._stages_here: set[StageId] = set()
        self._lock = threading.Lock()
        self._outputs: dict[StageId, dict[int, Output]] = defaultdict(dict)
        self._shuffles: list[Shuffled] = []

    def outlet(self, tasks: Sequence[TaskOrder]) -> Outlet:
        return ToRows(keyed=not self._read_here(tasks[0].key.stage))

    def may_run_here(self, inputs: Collection[ExchangeId]) -> bool:
        return all(self._is_here(exchange) for exchange in inputs)

    def expect_here(self, stage: StageId) -> None:
        self._stages_here.add(stage)

    def files_of(self, task: TaskOrder) -> tuple[TaskInput, ...]:
        return tuple(each for each in task.inputs if self._is_here(each.exchange))

    def carried_to(self, tasks: Sequence[TaskOrder]) -> tuple[CarriedInput, ...]:
        wanted = {(each.exchange, each.group): each.files for task in tasks for each in self.files_of(task)}
        return tuple(
            CarriedInput(*group, tuple(Path(file.path).read_bytes() for file in files))
            for group, files in wanted.items()
        )

    def rows_of(self, task: TaskOrder) -> tuple[tuple[RowInput, ...], list[Piece]]:
        groups = [(each.exchange, each.group) for each in task.inputs if not self._is_here(each.exchange)]
        with self._lock:
            return wire(self._graph(), groups, self._outputs.__getitem__)

    def run(self, plan: PlannedRows, function: TaskFunction, tasks: Sequence[TaskOrder]) -> list[SparkAnswer]:
        assert isinstance(plan, RowPlan)
        stage, outputs = tasks[0].key.stage, tasks[0].outputs
        made = plan.run(function)
        if self._read_here(stage):
            return self._with_files_here(collect(self._spark, made))
        shuffled = shuffle(self._spark, made, outputs + 1)
        with self._lock:
            self._shuffles.append(shuffled)
        answers: list[SparkAnswer] = [answer_of(a) for a in collect(self._spark, shuffled.rows, partition=outputs)]
        with self._lock:
            for answer in answers:
                source = Source(answer.key.task, answer.key.attempt, answer.spark_attempt)
                known = self._outputs[stage].get(source.task)
                if answer.report is not None and (known is None or known.source.attempt <= source.attempt):
                    self._outputs[stage][source.task] = Output(shuffled, source)
        return answers

    def close(self) -> None:
        self._files.close()
        with self._lock:
            shuffles, self._shuffles = self._shuffles, []
            self._outputs.clear()
        for each in shuffles:
            forget(self._spark, each)

    def _is_here(self, exchange: ExchangeId) -> bool:
        return self._graph().exchange(exchange).producer in self._stages_here

    def _read_here(self, stage: StageId) -> bool:
        return self._graph().stage(stage).output in self._graph().head.inputs

    def _with_files_here(self, rows: list[bytes]) -> list[SparkAnswer]:
        spool = ChunkSpool(Path(tempfile.mkdtemp(dir=self._files.directory)))
        answers: list[SparkAnswer] = []
        for row in rows:
            if is_chunk(row):
                spool.add(row)
            else:
                answers.append(answer_of(row))
        return [self._move_here(answer, spool) for answer in answers]

    def _move_here(self, answer: SparkAnswer, spool: ChunkSpool) -> SparkAnswer:
        output = self._graph().stage(answer.key.stage).output
        origin = Origin(output, answer.key.task, answer.key.attempt, answer.spark_attempt)
        if answer.report is None or not spool.has(origin):  # tasks that write files send no rows
            return answer
        here = spool.files(origin, 0)
        files = answer.report.manifest.files
        moved = [replace(file, path=at.path) for file, at in zip(files, here, strict=True)]
        return replace(answer, report=replace(answer.report, manifest=Manifest(answer.key, tuple(moved))))
