"""Child processes of a worker, as the worker sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sparkfusion.exchange.store import BorrowedStore
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds, TaskStores
from sparkfusion.worker.session import Surroundings
from sparkfusion.worker.task import TaskOrder, TaskReport


@dataclass(frozen=True)
class ChildDirectories:
    """Directories of the worker's in which a child writes for one task.

    Attributes:
        frames_in_memory, frames: for frames, in memory-backed storage and on disk.
        memory_bytes: how much of the first the task may take.
        writes: for rows that are on their way to the user's files.
        spills: of this task alone.
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
    """One task for a child. The order's inputs have local paths, and its plan is the one to run."""

    order: TaskOrder
    directories: ChildDirectories
    trust_python: bool

    def surroundings(self) -> Surroundings:
        return Surroundings(self.order.memory_limit, self.directories.spills, self.trust_python)


class TaskProcesses(Protocol):
    """Processes that run tasks for a worker, so that a crash costs one of them and not the worker."""

    def run(self, order: ChildOrder, ends: TaskEnds, cancel: CancelToken, limit: int) -> TaskReport:
        """Run a task in one of them, in the calling thread. Raises errors of ours, and what the ends raise.

        Args:
            limit: the most bytes of a message.
        """
        ...

    def warm(self) -> None:
        """Start those that are kept idle, without waiting for them: the first tasks need not wait so long."""
        ...

    def close(self) -> None:
        """End every process. Idempotent."""
        ...
