"""Every `sparkfusion.*` setting: name, type, default, and what it means.

`SETTINGS` is the one list: `SET`, `SHOW`, `session.config` and `docs/settings.md` all read it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from sparkfusion.errors import UnknownSettingError, UserError

PREFIX = "sparkfusion."
MIB = 1024 * 1024

SettingType = Literal["int", "bytes", "bool", "text", "choice"]


@dataclass(frozen=True)
class Setting:
    """One setting. `minimum` and `choices` are checked when it is set, not when it is used."""

    name: str
    type: SettingType
    default: int | bool | str
    doc: str
    minimum: int = 0
    choices: tuple[str, ...] = ()


SETTINGS: tuple[Setting, ...] = (
    Setting("sparkfusion.enabled", "bool", True, "Distribute queries. Off: everything runs on single-node DataFusion."),
    Setting(
        "sparkfusion.require_distributed",
        "bool",
        False,
        "Raise an error instead of running a query on a single node, if it reads enough to be distributed but is not.",
    ),
    Setting(
        "sparkfusion.bytes_per_partition",
        "bytes",
        16 * MIB,
        "How much scanned data makes one task worth it. 1 forces distribution, whatever the size.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.broadcast_bytes",
        "bytes",
        8 * MIB,
        "A join's build side up to this estimated size goes whole to every task, instead of both sides being shuffled.",
    ),
    Setting("sparkfusion.slots", "int", 0, "Tasks that run at the same time. 0: one for each CPU core."),
    Setting(
        "sparkfusion.task_processes",
        "bool",
        False,
        "In process, run tasks in child processes, so that a native crash or a function that hangs costs one task, not "
        "the program. Feeds' readers and object stores have to be picklable then. Workers have a switch of their own.",
    ),
    Setting(
        "sparkfusion.task_memory_bytes",
        "bytes",
        0,
        "Memory of one task; beyond it DataFusion spills to disk. 0: 60% of the machine's memory, shared by the slots.",
    ),
    Setting(
        "sparkfusion.store_memory_bytes",
        "bytes",
        -1,
        "Frames kept in memory-backed storage; beyond it they go to disk. -1: an eighth of the machine's memory.",
        minimum=-1,
    ),
    Setting(
        "sparkfusion.store",
        "choice",
        "auto",
        "On Spark, how frames get from task to task: `local`, through a directory of this machine; `shared`, through "
        "store_dir, which driver and executors all reach; `spark`, inside Spark's own shuffle. `auto`: local for a "
        "local master; on a cluster shared where store_dir is set, else spark.",
        choices=("auto", "local", "shared", "spark"),
    ),
    Setting(
        "sparkfusion.store_dir",
        "text",
        "",
        "Directory for frames beyond the memory budget and for spills. Empty: the system's temporary directory. On "
        "Spark it may be a URL such as s3://bucket/frames.",
    ),
    Setting(
        "sparkfusion.small_stage_bytes",
        "bytes",
        4 * MIB,
        "On Spark, a stage that reads no more than this runs in the driver's process, in less time than Spark takes to "
        "start a job; unless it calls Python functions, joins without keys, or frames are not in files. 0: never.",
    ),
    Setting(
        "sparkfusion.frame_compression",
        "choice",
        "auto",
        "Compression of frames in the store. `auto`: lz4 where they leave the machine, else none.",
        choices=("auto", "none", "lz4", "zstd"),
    ),
    Setting(
        "sparkfusion.channel_frames",
        "int",
        8,
        "Frames that wait between a running producer and its reader before the producer has to wait.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.worker_patience_seconds",
        "int",
        10,
        "On workers (flight://…), seconds of silence after which a worker counts as lost and its tasks run elsewhere.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.task_retries", "int", 3, "How often a task is tried again after an external or internal error."
    ),
    Setting(
        "sparkfusion.max_worker_losses",
        "int",
        3,
        "On workers (flight://…), how many workers may be lost while they run the same task; then the query fails.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.merge_small_partitions",
        "bool",
        True,
        "Let one task read several small shuffle partitions, as long as they stay under bytes_per_partition.",
    ),
    Setting(
        "sparkfusion.memory_table_bytes",
        "bytes",
        MIB,
        "In-memory tables larger than this are written to the store instead of travelling inside plans.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.feed_units_ahead",
        "int",
        1000,
        "Work units of a feed that may wait for a free task; then its provider has to wait.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.feed_host",
        "text",
        "",
        "On Spark, the driver's address where tasks ask for work units. Empty: 127.0.0.1 for a local master, else "
        "spark.driver.host.",
    ),
    Setting(
        "sparkfusion.feed_port",
        "int",
        0,
        "On Spark, the driver's port where tasks ask for work units. 0: any free one.",
    ),
    Setting("sparkfusion.max_plan_bytes", "bytes", 64 * MIB, "Largest plan that may travel.", minimum=1024),
)

_BY_NAME = {setting.name: setting for setting in SETTINGS}
_UNITS = {"": 1, "b": 1, "k": 1024, "kb": 1024, "kib": 1024, "m": MIB, "mb": MIB, "mib": MIB}
_UNITS |= {"g": 1024 * MIB, "gb": 1024 * MIB, "gib": 1024 * MIB}


def lookup(name: str) -> Setting:
    """The setting of that name, or an error that names the nearest ones."""
    import difflib

    found = _BY_NAME.get(name)
    if found is None:
        near = difflib.get_close_matches(name, _BY_NAME, n=1, cutoff=0.0)
        raise UnknownSettingError(f"unknown setting {name!r}", hint=f"did you mean {near[0]!r}?")
    return found


def parse(name: str, value: object) -> int | bool | str:
    """Check a value and give it its type; sizes may carry a unit.

    >>> parse("sparkfusion.bytes_per_partition", "4MiB")
    4194304
    """
    setting = lookup(name)
    text = str(value).strip()
    if setting.type == "bool":
        if text.lower() not in ("true", "false", "1", "0"):
            raise UserError(f"{name} takes true or false, not {text!r}")
        return text.lower() in ("true", "1")
    if setting.type == "choice":
        if text not in setting.choices:
            raise UserError(f"{name} takes one of {', '.join(setting.choices)}, not {text!r}")
        return text
    if setting.type == "text":
        return text
    number = _parse_number(name, text, with_unit=setting.type == "bytes")
    if number < setting.minimum:
        raise UserError(f"{name} must be at least {setting.minimum}, not {text}")
    return number


def _parse_number(name: str, text: str, *, with_unit: bool) -> int:
    digits = text.rstrip("BKMGibkmg ") if with_unit else text
    unit = text[len(digits) :].strip().lower()
    try:
        return int(digits.replace("_", "")) * _UNITS[unit]
    except (ValueError, KeyError):
        what = "a size such as 16777216 or 16MiB" if with_unit else "a whole number"
        raise UserError(f"{name} takes {what}, not {text!r}") from None


class Settings(Mapping[str, "int | bool | str"]):
    """The values of one session. Values given by the user shadow defaults; `resolved_*` turn "auto" into numbers."""

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values: dict[str, int | bool | str] = {name: s.default for name, s in _BY_NAME.items()}
        for name, value in (values or {}).items():
            self.set(name, value)

    def set(self, name: str, value: object) -> None:
        self._values[name] = parse(name, value)

    def reset(self, name: str) -> None:
        self._values[name] = lookup(name).default

    def copy(self) -> Settings:
        return Settings(self._values)

    def __getitem__(self, name: str) -> int | bool | str:
        lookup(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def integer(self, short_name: str) -> int:
        return int(self._values[PREFIX + short_name])

    def flag(self, short_name: str) -> bool:
        return bool(self._values[PREFIX + short_name])

    def text(self, short_name: str) -> str:
        return str(self._values[PREFIX + short_name])

    def compression(self, *, leaves_machine: bool) -> str:
        chosen = self.text("frame_compression")
        return chosen if chosen != "auto" else "lz4" if leaves_machine else "none"

    def directory(self) -> str:
        """`store_dir` if it is a directory of this machine, else nothing: a URL is for frames on Spark only."""
        chosen = self.text("store_dir").removeprefix("file://")
        return "" if "://" in chosen else chosen

    def resolved_slots(self) -> int:
        return self.integer("slots") or available_cores()

    def resolved_task_memory(self) -> int:
        return self.integer("task_memory_bytes") or max(64 * MIB, machine_memory() * 6 // 10 // self.resolved_slots())

    def resolved_store_memory(self) -> int:
        chosen = self.integer("store_memory_bytes")
        return machine_memory() // 8 if chosen < 0 else chosen


def available_cores() -> int:
    """Cores this process may use; a container's CPU set counts, the host's number does not."""
    return len(os.sched_getaffinity(0))


@cache
def machine_memory() -> int:
    """Bytes of memory this process may use: the machine's, or its control group's limit where that is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            limit = file.read().strip()
    except OSError:
        return total
    return total if limit == "max" else min(total, int(limit))
