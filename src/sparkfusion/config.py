"""Every `sparkfusion.*` setting: name, type, default, and what it means.

`SETTINGS` is the one list: `SET`, `SHOW`, `session.config` and `docs/settings.md` all read it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from sparkfusion.errors import UnknownSettingError, UserError

PREFIX = "sparkfusion."
MIB = 1024 * 1024
ALWAYS = -1
"""The value of some sizes that makes a decision the same every time where it is right, whatever it costs."""

DIALECTS = ("datafusion", "spark")

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
    Setting(
        "sparkfusion.enabled", "bool", True, "Distribute queries. If false, everything runs on single-node DataFusion."
    ),
    Setting(
        "sparkfusion.require_distributed",
        "bool",
        False,
        "Raise an error if a query reads enough to be distributed but cannot be, instead of running it on a single "
        "node.",
    ),
    Setting(
        "sparkfusion.dialect",
        "choice",
        "datafusion",
        "The SQL dialect of queries. `spark`: a query means what it means in Spark SQL, or is refused; this needs the "
        "extra `dialect`. `session.sql(…, dialect=…)` sets it for one query.",
        choices=DIALECTS,
    ),
    Setting(
        "sparkfusion.bytes_per_partition",
        "bytes",
        16 * MIB,
        "Bytes that one task should scan. A query that scans less is not distributed. 1 forces distribution of any "
        "size.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.broadcast_bytes",
        "bytes",
        8 * MIB,
        "If the build side of a join is estimated to be at most this large, it is broadcast to every task. Otherwise "
        "both sides are shuffled.",
    ),
    Setting(
        "sparkfusion.adaptive_broadcast_bytes",
        "bytes",
        64 * MIB,
        "If the build side of a shuffled join turns out to have at most this many bytes, and it costs less, it is "
        "broadcast to every task, and the other side is not shuffled. 0 means never. -1 means always where that is "
        "right, whatever it costs, for tests.",
        minimum=-1,
    ),
    Setting(
        "sparkfusion.key_set_bytes",
        "bytes",
        32 * MIB,
        "The keys of small filtered tables are computed first. They reduce the scans of large tables that are joined "
        "with them, if the keys have at most this many bytes. 0 means never. -1 means always where that is right, "
        "whatever it costs, for tests.",
        minimum=-1,
    ),
    Setting(
        "sparkfusion.skew_bytes",
        "bytes",
        64 * MIB,
        "A shuffle partition with at least this many bytes, and more than five times the median, is divided among "
        "several tasks if it is the probe side of a join that allows it. 0 means never. -1 means every partition where "
        "that is right, whatever it costs, for tests.",
        minimum=-1,
    ),
    Setting(
        "sparkfusion.swap_factor",
        "int",
        4,
        "If the build side of a shuffled join turns out to have at least this many times the bytes of the probe side, "
        "and more than bytes_per_partition, the sides are swapped: the smaller one is held in memory. 0 means never. "
        "-1 means always where that is right, for tests.",
        minimum=-1,
    ),
    Setting("sparkfusion.slots", "int", 0, "Tasks that run at the same time. 0 means one for each CPU core."),
    Setting(
        "sparkfusion.tasks",
        "int",
        0,
        "How many tasks a stage has; a stage that cannot have tasks of several partitions has one for each partition. "
        "0 means one for each machine. 1 means that one task runs the whole plan, on several cores of one machine; "
        "that is also what 0 means where all tasks run on one machine (in process, a local Spark master, a single "
        "worker). Queries over feeds or Spark DataFrames, writes, and queries under a memory limit that you set are "
        "split in any case.",
    ),
    Setting(
        "sparkfusion.task_cores",
        "int",
        0,
        "How many partitions one task runs at the same time. 0 means one for each slot of its machine; on a Spark "
        "cluster, spark.task.cpus. 1 means that every task runs one partition, so that a query is split even on one "
        "machine, unless tasks is 1. Such tasks spill to disk beyond their memory; wider ones do not.",
    ),
    Setting(
        "sparkfusion.task_processes",
        "bool",
        False,
        "In process: run tasks in child processes, so that a native crash or a function that hangs ends one task and "
        "not the program. Readers of feeds and object stores must then be picklable. Workers have an option of their "
        "own.",
    ),
    Setting(
        "sparkfusion.task_memory_bytes",
        "bytes",
        0,
        "Memory of one task. Beyond it, DataFusion spills to disk. 0 means 60% of the machine's memory, divided by the "
        "slots. If you set it, queries are split.",
    ),
    Setting(
        "sparkfusion.store_memory_bytes",
        "bytes",
        -1,
        "How much intermediate data (frames) is kept in memory-backed storage. More goes to disk. -1 means an eighth "
        "of the machine's memory.",
        minimum=-1,
    ),
    Setting(
        "sparkfusion.spark_mode",
        "choice",
        "jobs",
        "On Spark, how queries run. `jobs`: each stage is a Spark job. `resident`: stages run on resident workers, "
        "which one long Spark job holds in the executors. Stages then start faster, and each executor runs one Spark "
        "task less at a time.",
        choices=("jobs", "resident"),
    ),
    Setting(
        "sparkfusion.spark_catalog",
        "choice",
        "auto",
        "On Spark, who reads a table of Spark's catalog that a query names. `auto`: DataFusion, from its Parquet "
        "files, if it reads the same rows as Spark; else Spark. `spark`: always Spark. `off`: queries find only tables "
        "of the session.",
        choices=("auto", "spark", "off"),
    ),
    Setting(
        "sparkfusion.resident_idle_seconds",
        "int",
        60,
        "On Spark, resident workers that no query has used for so many seconds end. The next query starts them again.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.store",
        "choice",
        "auto",
        "On Spark, how frames get from task to task. `local`: through a directory of this machine. `shared`: through "
        "store_dir, which the driver and all executors must reach. `spark`: through Spark's own shuffle. `auto`: "
        "`local` for a local master; on a cluster, `shared` if store_dir is set, else `spark`. With Spark Connect, "
        "`spark` is not available, and `local` only if the server runs on this machine.",
        choices=("auto", "local", "shared", "spark"),
    ),
    Setting(
        "sparkfusion.store_dir",
        "text",
        "",
        "Directory for frames that exceed store_memory_bytes, and for spills. Empty means the system's temporary "
        "directory. On Spark it may be a URL such as s3://bucket/frames.",
    ),
    Setting(
        "sparkfusion.small_stage_bytes",
        "bytes",
        4 * MIB,
        "On Spark, a stage that reads at most this much runs in the driver, which takes less time than starting a "
        "Spark job. This does not apply to stages with Python functions or joins without keys, nor if frames are at a "
        "URL. If frames are in Spark's shuffle, it applies only to stages that read no frames of executors. 0 means "
        "never.",
    ),
    Setting(
        "sparkfusion.frame_compression",
        "choice",
        "auto",
        "Compression of frames. `auto`: lz4 if they leave the machine, else none.",
        choices=("auto", "none", "lz4", "zstd"),
    ),
    Setting(
        "sparkfusion.channel_frames",
        "int",
        8,
        "How many record batches may wait for the consumer of a stream. When there are more, the tasks wait.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.worker_patience_seconds",
        "int",
        10,
        "On workers (flight://… and resident ones), a worker that is silent for so many seconds counts as lost, and "
        "its tasks run on others.",
        minimum=1,
    ),
    Setting("sparkfusion.task_retries", "int", 3, "How often a task is retried after an external or internal error."),
    Setting(
        "sparkfusion.max_worker_losses",
        "int",
        3,
        "On workers (flight://… and resident ones), the query fails when so many workers were lost while they ran the "
        "same task.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.merge_small_partitions",
        "bool",
        True,
        "Let one task read several small shuffle partitions, together up to bytes_per_partition.",
    ),
    Setting(
        "sparkfusion.skip_empty_stages",
        "bool",
        True,
        "Do not run a stage that cannot give rows, such as an inner join with an empty side, nor a stage that only "
        "such stages read.",
    ),
    Setting(
        "sparkfusion.memory_table_bytes",
        "bytes",
        MIB,
        "In-memory tables larger than this are written to files. Smaller ones are sent inside plans.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.feed_units_ahead",
        "int",
        1000,
        "How many work units of a feed may wait for a free task. When there are more, the provider waits.",
        minimum=1,
    ),
    Setting(
        "sparkfusion.feed_host",
        "text",
        "",
        "On Spark, the address of the driver where tasks ask for work units and resident workers register. Empty means "
        "127.0.0.1 for a local master, else spark.driver.host.",
    ),
    Setting(
        "sparkfusion.feed_port",
        "int",
        0,
        "On Spark, the port of the driver where tasks ask for work units and resident workers register. 0 means any "
        "free port.",
    ),
    Setting(
        "sparkfusion.max_plan_bytes",
        "bytes",
        64 * MIB,
        "The largest plan that may be sent to a task. A larger one is an error.",
        minimum=1024,
    ),
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


def check_dialect(name: str) -> str:
    """The name of a dialect, if there is one of this name."""
    return str(parse("sparkfusion.dialect", name))


def _parse_number(name: str, text: str, *, with_unit: bool) -> int:
    digits = text.rstrip("BKMGibkmg ") if with_unit else text
    unit = text[len(digits) :].strip().lower()
    try:
        return int(digits.replace("_", "")) * _UNITS[unit]
    except (ValueError, KeyError):
        what = "a size such as 16777216 or 16MiB" if with_unit else "a whole number"
        raise UserError(f"{name} takes {what}, not {text!r}") from None


class Settings(Mapping[str, "int | bool | str"]):
    """The values of one session. Values given by the user shadow defaults; `*_or_default` turn "auto" into numbers."""

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
        """`store_dir` if it is a directory of this machine, otherwise empty: a URL is for frames on Spark only."""
        chosen = self.text("store_dir").removeprefix("file://")
        return "" if "://" in chosen else chosen

    def slots_or_default(self) -> int:
        return self.integer("slots") or available_cores()

    def task_memory_or_default(self) -> int:
        return self.integer("task_memory_bytes") or fair_share(self.slots_or_default())

    def store_memory_or_default(self) -> int:
        chosen = self.integer("store_memory_bytes")
        return machine_memory() // 8 if chosen < 0 else chosen


def available_cores() -> int:
    """Cores this process may use. In a container this is its CPU set, not the number of cores of the machine."""
    return len(os.sched_getaffinity(0))


def fair_share(slots: int) -> int:
    """Bytes for one of so many tasks at once; the rest is for frames, and for memory that DataFusion does not count."""
    return max(64 * MIB, machine_memory() * 6 // 10 // slots)


@cache
def machine_memory() -> int:
    """Bytes of memory this process may use: the machine's, or its control group's limit where that is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return total if limit == "max" else min(total, int(limit))
