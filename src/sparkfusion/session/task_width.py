"""How wide tasks are: whether one task runs a whole plan, and how many partitions a task runs at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparkfusion.config import Settings
from sparkfusion.config.memory_limits import has_memory_limit, memory_share
from sparkfusion.runner.base import Runner

MEMORY_FACTOR = 4
"""A query that scans files of more than this many times the memory of its machines has tasks of one partition.

Of the 22 queries of TPC-H at scale factor 1, one task on two cores had enough memory for all with as many bytes as the
query scans, for 20 with half of that, and for 17 with a quarter.
"""


@dataclass(frozen=True)
class Machines:
    """Where tasks run: on how many machines, and whether they may run several partitions of a stage there.

    Attributes:
        cores_per_task: the most that a scheduler gives to one of them; None if they share those of their machine.
        memory: bytes that tasks on one machine have together; 0 if as many as in this process.
    """

    count: int = 1
    take_wide_tasks: bool = True
    cores_per_task: int | None = None
    memory: int = 0

    @property
    def is_one(self) -> bool:
        """Whether all tasks run on one machine. A scheduler may add others at any time."""
        return self.count == 1 and self.cores_per_task is None

    @classmethod
    def of(cls, runner: Runner, settings: Settings) -> Machines:
        return cls(runner.machines, runner.takes_wide_tasks(settings), runner.cores_per_task, runner.machine_memory)


@dataclass(frozen=True)
class TaskWidth:
    """How a plan runs.

    Attributes:
        whole: one task runs the whole plan, so many partitions of it at once; None if it is split.
        tasks: how many tasks run at once, if it is split and they are wide.
        per_task: how many partitions of its stage a task runs at most, if it is split.
        why: the reason for tasks of one partition, where users might expect wide ones.
    """

    whole: int | None = None
    tasks: int = 1
    per_task: int = 1
    why: str | None = None

    @property
    def is_wide(self) -> bool:
        """Whether tasks run several partitions: they do not spill, and the query runs again if one lacks memory."""
        return self.whole is not None or self.per_task > 1


def most_partitions(settings: Settings, machines: Machines, target: int) -> int:
    """How many partitions a plan has at most: the target, or what the user's choice of tasks and cores makes."""
    tasks, cores = settings.integer("tasks"), settings.integer("task_cores")
    if tasks == 1 or (tasks == 0 and (machines.count == 1 or machines.cores_per_task is not None or cores <= 1)):
        return target
    if cores > 1:
        return (tasks or machines.count) * cores
    return min(target, tasks * (1 if cores == 1 else max(1, target // tasks)))


def choose_width(
    settings: Settings, options: Mapping[str, str], machines: Machines, upper: int, scanned: int
) -> TaskWidth:
    """The width of the tasks of a query that may have wide ones.

    A wide task cannot spill: if several partitions exchange rows in one process and memory is short, DataFusion 55 may
    hang (docs/upstream-defects.md). So tasks have one partition under a memory limit of the user's, and if the query
    reads far more than fits into memory. What the user chose counts more than that estimate.

    Args:
        upper: the most partitions on all machines.
        scanned: bytes of the files that the query reads.
    """
    tasks, cores = settings.integer("tasks"), settings.integer("task_cores")
    whole = tasks == 1 or (tasks == 0 and machines.is_one and cores != 1)
    on_one = max(1, upper // (tasks or machines.count)) if not whole else -(-upper // machines.count)
    if machines.cores_per_task is not None and not whole:
        on_one = min(on_one, machines.cores_per_task)
    partitions = cores or min(on_one, settings.integer("slots") or on_one)
    if partitions == 1 and not whole:
        return TaskWidth()
    if has_memory_limit(settings, options):
        return TaskWidth(why="a memory limit is set, and a task of several partitions could not spill")
    memory = machines.memory or memory_share(settings, options, alone=True)
    if not (tasks and cores) and tasks != 1 and scanned > MEMORY_FACTOR * memory * machines.count:
        return TaskWidth(why=f"it reads {scanned:,} bytes, and a task of several partitions could not spill")
    if not whole and not machines.take_wide_tasks:
        return TaskWidth(why="with sparkfusion.store = spark, a task cannot run several partitions")
    if whole:
        return TaskWidth(whole=partitions)
    return TaskWidth(tasks=tasks or _at_once(machines, cores), per_task=partitions)


def _at_once(machines: Machines, cores: int) -> int:
    """How many tasks run at once, if the user chose how many cores each has: a scheduler puts several on a machine."""
    if machines.cores_per_task is None or not cores:
        return machines.count
    return max(1, machines.count * machines.cores_per_task // cores)
