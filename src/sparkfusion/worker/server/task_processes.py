"""The contract between a worker and its child processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sparkfusion.exchange.store import BorrowedStore
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds, TaskStores
from sparkfusion.worker.task import TaskOrder, TaskReport
from sparkfusion.worker.task_context import Surroundings


@dataclass(frozen=True)
class ChildDirectories:
    """Directories of the worker in which a child writes for one task.

    Attributes:
        frames_in_memory, frames: for frames, in memory-backed storage and on disk.
        memory_bytes: how much memory-backed storage the task may use.
        writes: for rows that will become files of the user.
        spills: for this task alone.
    """

    frames_in_memory: str
    frames: str
    memory_bytes: int
    writes: str
    spills: str

    def stores(self) -> TaskStores:
        frames = BorrowedStore(self.frames_in_memory, self.frames, self.memory_bytes)
        return TaskStores(frames, BorrowedStore("", self.writes, 0))


@dataclass(frozen=True)
class ChildOrder:
    """One task for a child process. The order's inputs have local paths, and its plan has already been rewritten."""

    order: TaskOrder
    directories: ChildDirectories
    trust_python: bool

    def surroundings(self) -> Surroundings:
        return Surroundings(self.order.memory_limit, self.directories.spills, self.trust_python)


class TaskProcesses(Protocol):
    """Processes that run tasks for a worker, so that a crash ends one of them and not the worker."""

    def run(self, order: ChildOrder, ends: TaskEnds, cancel: CancelToken, limit: int) -> TaskReport:
        """Run a task in one of the processes and wait for it in the calling thread. Raises errors of ours, and errors
        that the ends raise.

        Args:
            limit: the most bytes of a message.
        """
        ...

    def warm(self) -> None:
        """Start the idle processes in the background, so that the first tasks wait less."""
        ...

    def resident_bytes(self) -> int:
        """The memory that all of them hold now."""
        ...

    def close(self) -> None:
        """End every process. Idempotent."""
        ...
