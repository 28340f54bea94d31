"""The cores and the memory of this machine or container."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from sparkfusion.config.setting_list import MIB

PROCESSES = Path("/proc")
"""Exists only on Linux. On other systems we cannot see whether a process is ending, or how much memory it uses."""

_UNKNOWN_MEMORY = 4096 * MIB
"""Assumed for a machine that does not report how much memory it has."""


def available_cores() -> int:
    """Cores this process may use. In a container this is its CPU set, not the number of cores of the machine. A system
    without CPU sets, such as macOS, reports the number of its cores."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    return len(os.sched_getaffinity(0))


def fair_share(slots: int) -> int:
    """Bytes for one task if this many run at once. The rest is for frames, and for memory that DataFusion does not
    count."""
    return max(64 * MIB, machine_memory() * 6 // 10 // slots)


def task_share(partitions: int, slots: int, share: int | None = None) -> int:
    """Bytes for a task of this many partitions, which run at once: one share for each partition, up to the number of
    slots.

    `share`: bytes of one slot; by default, the fair share.

    >>> task_share(1, slots=4, share=100), task_share(3, slots=4, share=100), task_share(9, slots=4, share=100)
    (100, 300, 400)
    """
    return (fair_share(slots) if share is None else share) * min(partitions, slots)


@cache
def machine_memory() -> int:
    """Bytes of memory this process may use: the machine's, or its control group's limit where that is lower."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not every system reports it
        total = _UNKNOWN_MEMORY
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return total if limit == "max" else min(total, int(limit))


def frame_memory() -> int:
    """Bytes of this machine's memory for frames of one query, unless the user chose another number."""
    return machine_memory() // 8


def resident_bytes(process: int) -> int:
    """The memory that a process holds now; 0 if that is not known, as for a process that has ended."""
    try:
        return int((PROCESSES / str(process) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
