"""How wide tasks are: whether one task runs a whole plan, on how many cores, or every task one partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparkfusion.config import Settings
from sparkfusion.worker.memory_limits import has_memory_limit, memory_share

MEMORY_FACTOR = 4
"""A query that scans files of more than so many times the memory of a task is split from the start.

Of the 22 queries of TPC-H at scale factor 1, one task on two cores had enough memory for all with as many bytes as the
query scans, for 20 with half of that, and for 17 with a quarter.
"""


@dataclass(frozen=True)
class TaskWidth:
    """How a plan runs. `partitions`: so many in one task for the whole plan; None if it is split. `why_split`: the
    reason, where users might expect one task."""

    partitions: int | None
    why_split: str | None = None


def choose_width(
    settings: Settings, options: Mapping[str, str], *, machines: int, upper: int, scanned: int
) -> TaskWidth:
    """The width of the tasks of a query that could run in one task.

    A task for a whole plan cannot spill: if several partitions exchange rows in one process and memory is short,
    DataFusion 55 may hang (docs/upstream-defects.md). So a query is split under a memory limit of the user's, and if it
    reads far more than fits into memory. What the user chose counts more than that estimate.

    Args:
        machines: on how many machines tasks run.
        upper: the most partitions on all of them.
        scanned: bytes of the files that the query reads.
    """
    tasks, cores = settings.integer("tasks"), settings.integer("task_cores")
    if tasks > 1 or (tasks == 0 and (cores == 1 or machines > 1)):
        return TaskWidth(None)
    if has_memory_limit(settings, options):
        return TaskWidth(None, "a memory limit is set, and one task for the whole plan could not spill")
    memory = memory_share(settings, options, alone=True)
    if tasks == 0 and scanned > MEMORY_FACTOR * memory:
        return TaskWidth(None, f"it reads {scanned:,} bytes, too much for one task with {memory:,} bytes of memory")
    on_one = -(-upper // machines)
    return TaskWidth(cores or min(on_one, settings.integer("slots") or on_one))
