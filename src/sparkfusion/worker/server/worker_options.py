"""How a worker is set up, whatever the transport to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkfusion.worker.server.guard import Guard
from sparkfusion.worker.server.task_processes import TaskProcesses
from sparkfusion.worker.user_functions import OwnFunctions


@dataclass(frozen=True)
class WorkerOptions:
    """How a worker is set up.

    Attributes:
        slots: how many tasks run at once.
        directory: for frames beyond their share of memory; empty for the system's temporary one.
        spill_directory: for tasks beyond theirs; empty for what DataFusion takes when it first spills. None for one
            of the query's own, which goes with it and costs every task a millisecond.
        task_memory: bytes for a task that comes without a limit; 0 for its share of the machine's.
        release_seconds: how long tasks of a query that is let go may take to end before their files go.
        counts_slots: whether it keeps to its slots. Not where its only caller does.
        children: processes that run the tasks; without them they run on threads of this process. Whoever made them
            closes them after the worker.
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
