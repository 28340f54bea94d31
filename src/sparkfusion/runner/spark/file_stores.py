"""Where the frames of a query's tasks are kept between its jobs: the contract of stores, and those that are files."""

from __future__ import annotations

import itertools
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sparkfusion.exchange.owned import SharedHome
from sparkfusion.exchange.store import SHARED_MEMORY, BorrowedStore, FrameStore
from sparkfusion.ids import ExchangeId, QueryId, StageId
from sparkfusion.runner.spark.choice import StoreChoice
from sparkfusion.runner.spark.inputs import bring_inputs
from sparkfusion.runner.spark.remote_home import RemoteHome
from sparkfusion.runner.spark.spark_task import (
    CarriedInput,
    Outlet,
    RowInput,
    SparkAnswer,
    TaskFunction,
    ToFiles,
    ToUrl,
    answer_of,
)
from sparkfusion.urls import is_url, join, plain_path
from sparkfusion.worker.task import TaskInput, TaskOrder

if TYPE_CHECKING:
    from sparkfusion.runner.spark.rows import RddPartitions


class PlannedRows(Protocol):
    """The rows that each task of a Spark job reads: its own record, and whatever else Spark brings it."""

    def collect(self, function: TaskFunction) -> list[bytes]:
        """Run a job that applies the function to the rows of each task, and return the function's rows."""
        ...


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

    mailbox: str = ""
    """A place for messages between tasks and this process, a directory or URL that both reach; empty if none."""

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

    def carried_inputs(self, tasks: Sequence[TaskOrder]) -> tuple[CarriedInput, ...]:
        """The inputs that are in files here, and have to be sent with these tasks of one stage."""
        return ()

    @abstractmethod
    def rows_of(self, task: TaskOrder) -> tuple[tuple[RowInput, ...], list[RddPartitions]]:
        """The inputs of the task that come as rows, and where Spark finds them."""

    @abstractmethod
    def run(self, plan: PlannedRows, function: TaskFunction, tasks: Sequence[TaskOrder]) -> list[SparkAnswer]:
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
    """Frames in files that every task reads directly: on this machine, or in a shared directory.

    `here`: tasks run on this machine, so a task's own directory can be one that this process removes.
    """

    readable_at_once = True

    def __init__(self, query: QueryId, directory: str, *, in_memory: bool, here: bool) -> None:
        self._disk = SharedHome(query, Path(directory or tempfile.gettempdir()))
        use_memory = in_memory and os.access(SHARED_MEMORY, os.W_OK)
        self._memory = SharedHome(query, SHARED_MEMORY) if use_memory else None
        self.directory = str(self._disk.path)
        self.home = self.directory if here else ""
        self.memory_home = str(self._memory.path) if self._memory is not None else ""
        home = Path(self.directory) / "here"
        home.mkdir()
        self.here = BorrowedStore("", str(home), 0)
        self.mailbox = str(Path(self.directory) / "mail")

    def outlet(self, tasks: Sequence[TaskOrder]) -> Outlet:
        return ToFiles(self.directory)

    def rows_of(self, task: TaskOrder) -> tuple[tuple[RowInput, ...], list[RddPartitions]]:
        return (), []

    def run(self, plan: PlannedRows, function: TaskFunction, tasks: Sequence[TaskOrder]) -> list[SparkAnswer]:
        return [answer_of(answer) for answer in plan.collect(function)]

    def close(self) -> None:
        self._disk.close()
        if self._memory is not None:
            self._memory.close()


class UrlStore(FileStore):
    """Frames in files of an object store, or of anything that Arrow reaches by a URL."""

    def __init__(self, query: QueryId, url: str, *, here: bool) -> None:
        super().__init__(query, "", in_memory=False, here=here)
        self.here = None
        self._remote = RemoteHome(url, query)
        self.mailbox = join(self._remote.url, "mail")
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


def open_files(choice: StoreChoice, query: QueryId, *, here: bool, in_memory: bool) -> FileStore:
    """The store of a query, for a choice that is not Spark's shuffle. Memory-backed storage is used only if the user
    gives no directory."""
    if is_url(choice.directory):
        return UrlStore(query, choice.directory, here=here)
    directory = plain_path(choice.directory) if choice.directory else ""
    return FileStore(query, directory, in_memory=in_memory and not directory, here=here)
