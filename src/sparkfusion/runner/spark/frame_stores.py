"""The stores of Spark: where the frames of a query's tasks are kept between its jobs."""

from __future__ import annotations

import itertools
import os
import tempfile
import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext

from sparkfusion.exchange.chunks import ChunkSpool, Origin, is_chunk
from sparkfusion.exchange.manifest import Manifest
from sparkfusion.exchange.owned import SharedHome
from sparkfusion.exchange.remote import RemoteHome
from sparkfusion.exchange.store import SHARED_MEMORY, BorrowedStore, FrameStore
from sparkfusion.ids import ExchangeId, QueryId, StageId
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.spark.inputs import bring_inputs
from sparkfusion.runner.spark.master import is_local
from sparkfusion.runner.spark.rows import Piece, RowPlan, Shuffled, TaskFunction, collect, forget, shuffle
from sparkfusion.runner.spark.spark_task import (
    CarriedInput,
    Outlet,
    RowInput,
    Source,
    SparkAnswer,
    ToFiles,
    ToRows,
    ToUrl,
    answer_of,
)
from sparkfusion.runner.spark.wiring import Output, wire
from sparkfusion.worker.task import TaskInput, TaskOrder


class SparkStore(ABC):
    """What differs between the stores. The threads of one query's jobs use it at the same time.

    Attributes:
        directory: the query's own directory here, removed by `close`.
        home, memory_home: directories for tasks on the driver's machine; empty if executors run on other machines.
    """

    directory: str
    home: str
    memory_home: str
    here: FrameStore | None = None
    """Where tasks that run in this process put their frames; None if others could not read them there."""

    readable_at_once: bool
    """Whether a task's output can be read when the task is done, or only when its whole job is."""

    @abstractmethod
    def outlet(self, tasks: Sequence[TaskOrder]) -> Outlet:
        """Where these tasks of one stage put their frames."""

    def may_run_here(self, inputs: Collection[ExchangeId]) -> bool:
        """Whether a task that reads these exchanges can run in this process, and others can read what it writes."""
        return self.here is not None

    def expect_here(self, stage: StageId) -> None:
        """Called before tasks of a stage run in this process."""
        return

    def files_of(self, task: TaskOrder) -> tuple[TaskInput, ...]:
        """The inputs of the task that come as files."""
        return task.inputs

    def carried_to(self, tasks: Sequence[TaskOrder]) -> tuple[CarriedInput, ...]:
        """The inputs that are in files here, and have to be sent with these tasks of one stage."""
        return ()

    @abstractmethod
    def rows_of(self, task: TaskOrder) -> tuple[tuple[RowInput, ...], list[Piece]]:
        """The inputs of the task that come as rows, and where Spark finds them."""

    @abstractmethod
    def run(self, plan: RowPlan, function: TaskFunction, tasks: Sequence[TaskOrder]) -> list[SparkAnswer]:
        """Run one Spark job to its end. Manifests of outputs that the driver reads name files on this machine."""

    @property
    def frames_url(self) -> str:
        """The URL to download frames from; may hold secrets. Empty if they need not be downloaded."""
        return ""

    def bring_here(self, inputs: tuple[TaskInput, ...]) -> tuple[TaskInput, ...]:
        """Inputs of the head, in files of this machine."""
        return inputs

    @abstractmethod
    def close(self) -> None:
        """Remove everything. Idempotent."""


class FileStore(SparkStore):
    """Frames in files that every task reads directly: on this machine, or in a shared directory."""

    readable_at_once = True

    def __init__(self, spark: SparkContext, query: QueryId, directory: str, *, in_memory: bool) -> None:
        self._spark = spark
        self._disk = SharedHome(query, Path(directory or tempfile.gettempdir()))
        use_memory = in_memory and os.access(SHARED_MEMORY, os.W_OK)
        self._memory = SharedHome(query, SHARED_MEMORY) if use_memory else None
        self.directory = str(self._disk.path)
        self.home = self.directory if is_local(spark) else ""
        self.memory_home = str(self._memory.path) if self._memory is not None else ""
        home = Path(self.directory) / "here"
        home.mkdir()
        self.here = BorrowedStore("", str(home), 0)

    def outlet(self, tasks: Sequence[TaskOrder]) -> Outlet:
        return ToFiles(self.directory)

    def rows_of(self, task: TaskOrder) -> tuple[tuple[RowInput, ...], list[Piece]]:
        return (), []

    def run(self, plan: RowPlan, function: TaskFunction, tasks: Sequence[TaskOrder]) -> list[SparkAnswer]:
        return [answer_of(answer) for answer in collect(self._spark, plan.run(function))]

    def close(self) -> None:
        self._disk.close()
        if self._memory is not None:
            self._memory.close()


class UrlStore(FileStore):
    """Frames in files of an object store, or of anything that Arrow reaches by a URL."""

    def __init__(self, spark: SparkContext, query: QueryId, url: str) -> None:
        super().__init__(spark, query, "", in_memory=False)
        self.here = None
        self._remote = RemoteHome(url, query)
        self._downloads = itertools.count()

    @property
    def frames_url(self) -> str:
        return self._remote.url

    def outlet(self, tasks: Sequence[TaskOrder]) -> Outlet:
        return ToUrl()

    def bring_here(self, inputs: tuple[TaskInput, ...]) -> tuple[TaskInput, ...]:
        return bring_inputs(inputs, self.frames_url, Path(self.directory) / f"here-{next(self._downloads)}")

    def close(self) -> None:
        super().close()
        self._remote.close()


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
        self._files = FileStore(spark, query, "", in_memory=is_local(spark))
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

    def run(self, plan: RowPlan, function: TaskFunction, tasks: Sequence[TaskOrder]) -> list[SparkAnswer]:
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
