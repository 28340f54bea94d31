"""How much memory tasks, heads and single-node queries in this process may use, and where they spill."""

from __future__ import annotations

from collections.abc import Mapping

from datafusion import SessionContext

from sparkfusion.config.settings import Settings

_MEMORY_LIMIT = "datafusion.runtime.memory_limit"
_TEMP_DIRECTORY = "datafusion.runtime.temp_directory"


def memory_share(settings: Settings, options: Mapping[str, str], *, alone: bool) -> int:
    """Bytes for one task. With `alone`, for work that runs while no task does: the memory of all slots.

    A limit that the user set in DataFusion is divided among the slots, unless `sparkfusion.task_memory_bytes` is set.
    """
    slots = settings.slots_or_default()
    share = settings.task_memory_or_default()
    limit = options.get(_MEMORY_LIMIT, "unlimited")
    if limit != "unlimited" and not settings.integer("task_memory_bytes"):
        share = SessionContext.parse_capacity_limit(_MEMORY_LIMIT, limit) // slots
    return share * slots if alone else share


def has_memory_limit(settings: Settings, options: Mapping[str, str]) -> bool:
    """Whether the user chose a memory limit, for tasks or for DataFusion."""
    return bool(settings.integer("task_memory_bytes")) or options.get(_MEMORY_LIMIT, "unlimited") != "unlimited"


def spill_directory(settings: Settings, options: Mapping[str, str]) -> str:
    """Where operators spill; empty for the system's temporary directory."""
    return settings.directory() or options.get(_TEMP_DIRECTORY, "")
