"""The options of a worker, the same for every transport."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkfusion.worker.server.guard import Guard
from sparkfusion.worker.server.task_processes import TaskProcesses
from sparkfusion.worker.user_functions import OwnFunctions


@dataclass(frozen=True)
class WorkerOptions:
    """The options of a worker.

    Attributes:
        slots: how many tasks run at once.
        directory: for frames that exceed their share of memory; empty for the system's temporary directory.
        spill_directory: for tasks that exceed their memory; empty for the directory that DataFusion makes when it first
            spills. None for a directory of the query, which is removed with it and costs every task a millisecond.
        task_memory: bytes for a task whose order has no limit; 0 for its share of the machine's memory.
        release_seconds: how long tasks of a released query may take to end before their files are removed.
        counts_slots: whether the worker itself limits the running tasks. False if its only caller does.
        children: processes that run the tasks; without them tasks run on threads of this process. The code that made
            them closes them, after the worker.
    """

    slots: int
    directory: str = ""
    guard: Guard = field(default_factory=Guard)
    spill_directory: str | None = None
    task_memory: int = 0
    release_seconds: float = 5.0
    own: OwnFunctions = field(default_factory=OwnFunctions)
    counts_slots: bool = True
    children: TaskProcesses | None = None
