"""The store that is Spark's own shuffle."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext

from sparkfusion.exchange.manifest import Manifest
from sparkfusion.exchange.store import FrameStore
from sparkfusion.ids import ExchangeId, QueryId, StageId
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.spark.chunks import ChunkSpool, Origin, is_chunk
from sparkfusion.runner.spark.file_stores import FileStore, PlannedRows, SparkStore
from sparkfusion.runner.spark.master import is_local
from sparkfusion.runner.spark.rows import RddPartitions, RowPlan, Shuffled, collect, forget, shuffle
from sparkfusion.runner.spark.spark_task import (
    CarriedInput,
    Outlet,
    ProducerAttempt,
    RowInput,
    SparkAnswer,
    TaskFunction,
    ToRows,
    answer_of,
)
from sparkfusion.runner.spark.wiring import Output, wire
from sparkfusion.worker.task import TaskInput, TaskOrder


class ShuffleStore(SparkStore):
    """Frames are rows of Spark's own shuffle, which keeps them on the executors and recomputes lost ones.

    A stage is computed by a job that reads only one small partition, with the tasks' answers. Frames that the driver
    itself reads come with the answers and are written to files here: the head's inputs, rows for the consumer, and a
    copy of a stage's whole output if that is small, so that small stages that read it can run in the driver.

    Args:
        copied_bytes: up to this size, a stage's output is copied.
    """

    readable_at_once = False
    here: FrameStore  # of tasks that read only what is here; their frames are sent with the tasks that read them

    def __init__(self, spark: SparkContext, query: QueryId, graph: Callable[[], StageGraph], copied_bytes: int) -> None:
        self._spark = spark
        self._copied_bytes = copied_bytes
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
        self._needed_here: set[StageId] = set()

    def outlet(self, tasks: Sequence[TaskOrder]) -> Outlet:
        stage = self._graph().stage(tasks[0].key.stage)
        if self._read_here(stage.id):
            return ToRows(keyed=False)
        # a stage in the driver reads its copy: if a task is run again, its new output must be there too
        needed = stage.id in self._needed_here
        return ToRows(keyed=True, copy_bytes=sys.maxsize if needed else self._copied_bytes // len(tasks))

    def may_run_here(self, inputs: Collection[ExchangeId]) -> bool:
        return all(self._is_here(exchange) or self._is_copied(exchange) for exchange in inputs)

    def expect_here(self, stage: StageId) -> None:
        self._stages_here.add(stage)
        graph = self._graph()
        self._needed_here.update(graph.exchange(exchange).producer for exchange in graph.stage(stage).inputs)

    def files_of(self, task: TaskOrder) -> tuple[TaskInput, ...]:
        return tuple(each for each in task.inputs if self._is_here(each.exchange))

    def carried_inputs(self, tasks: Sequence[TaskOrder]) -> tuple[CarriedInput, ...]:
        wanted = {(each.exchange, each.group): each.files for task in tasks for each in self.files_of(task)}
        return tuple(
            CarriedInput(*group, tuple(Path(file.path).read_bytes() for file in files))
            for group, files in wanted.items()
        )

    def rows_of(self, task: TaskOrder) -> tuple[tuple[RowInput, ...], list[RddPartitions]]:
        groups = [(each.exchange, each.group) for each in task.inputs if not self._is_here(each.exchange)]
        with self._lock:
            return wire(self._graph(), groups, self._outputs.__getitem__)

    def run(self, plan: PlannedRows, function: TaskFunction, tasks: Sequence[TaskOrder]) -> list[SparkAnswer]:
        assert isinstance(plan, RowPlan)
        stage, outputs = tasks[0].key.stage, tasks[0].outputs
        made = plan.run(function)
        if self._read_here(stage):
            answers, frames = self._answers_and_frames(collect(self._spark, made))
            return [self._move_here(answer, frames) for answer in answers]
        shuffled = shuffle(self._spark, made, outputs + 1)
        with self._lock:
            self._shuffles.append(shuffled)
        answers, copies = self._answers_and_frames(collect(self._spark, shuffled.rows, partition=outputs))
        with self._lock:
            for answer in answers:
                source = ProducerAttempt(answer.key.task, answer.key.attempt, answer.spark_attempt)
                known = self._outputs[stage].get(source.task)
                if answer.report is not None and (known is None or known.source.attempt <= source.attempt):
                    self._outputs[stage][source.task] = Output(shuffled, source, copies.has(self._origin(answer)))
        return [self._move_here(answer, copies) for answer in answers]

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

    def _is_copied(self, exchange: ExchangeId) -> bool:
        """Whether this process has a copy of all that Spark holds of an exchange whose producer is done."""
        with self._lock:
            outputs = self._outputs[self._graph().exchange(exchange).producer]
            return bool(outputs) and all(output.copied for output in outputs.values())

    def _answers_and_frames(self, rows: list[bytes]) -> tuple[list[SparkAnswer], ChunkSpool]:
        """The answers among rows that tasks sent, and the frames, in files."""
        spool = ChunkSpool(Path(tempfile.mkdtemp(dir=self._files.directory)))
        answers: list[SparkAnswer] = []
        for row in rows:
            if is_chunk(row):
                spool.add(row)
            else:
                answers.append(answer_of(row))
        return answers, spool

    def _origin(self, answer: SparkAnswer) -> Origin:
        output = self._graph().stage(answer.key.stage).output
        return Origin(output, answer.key.task, answer.key.attempt, answer.spark_attempt)

    def _move_here(self, answer: SparkAnswer, spool: ChunkSpool) -> SparkAnswer:
        """The answer, with the frames that came with it; unchanged if none did."""
        origin = self._origin(answer)
        if answer.report is None or not spool.has(origin):  # tasks that write files send no rows
            return answer
        files = answer.report.manifest.files
        here = {partition: iter(spool.files(origin, partition)) for partition in {file.partition for file in files}}
        moved = tuple(replace(file, path=next(here[file.partition]).path) for file in files)
        return replace(answer, report=replace(answer.report, manifest=Manifest(answer.key, moved)))
