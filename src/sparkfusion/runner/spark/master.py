"""Where the tasks of a Spark context run, from the name of its master and its settings."""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sparkfusion.config import available_cores

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOCAL_WITH_ATTEMPTS = re.compile(r"local\[[^,\]]+,\s*(\d+)\s*\]")
_LOCAL_CORES = re.compile(r"local\[\s*(\d+|\*)\s*(,[^\]]*)?\]")
_ATTEMPTS_OF_A_CLUSTER = 4
_ALL_CORES_OF_A_NODE = ("spark://", "local-cluster[")
_settings: weakref.WeakKeyDictionary[SparkContext, Mapping[str, str]] = weakref.WeakKeyDictionary()


def settings_of(spark: SparkContext) -> Mapping[str, str]:
    """The settings of a context, which do not change while it lives. Read once: `getConf` calls the JVM four times for
    each setting, which took 40 ms of every query."""
    if spark not in _settings:
        _settings[spark] = dict(spark.getConf().getAll())
    return _settings[spark]


def is_local(spark: SparkContext) -> bool:
    """Whether executors are threads of the driver's machine that share its file system."""
    return names_one_machine(spark.master or "")


def names_one_machine(master: str) -> bool:
    return master.split("[", maxsplit=1)[0] == "local"


def attempts_of(spark: SparkContext) -> int:
    """How many attempts Spark itself makes at a task."""
    return attempts_on(spark.master or "", settings_of(spark).get("spark.task.maxFailures"))


def attempts_on(master: str, failures: str | None) -> int:
    """How many attempts Spark makes at a task, with this `spark.task.maxFailures`. A local master without a second
    number makes one."""
    found = _LOCAL_WITH_ATTEMPTS.fullmatch(master)
    if found is not None:
        return int(found[1])
    return 1 if names_one_machine(master) else int(failures or _ATTEMPTS_OF_A_CLUSTER)


def count_executors(spark: SparkContext) -> int:
    """How many executors there are now; with a local master, the driver is the only one."""
    known = int(spark._jsc.sc().getExecutorMemoryStatus().size())  # with the driver
    return 1 if is_local(spark) else known - 1


def slots_of_executor(spark: SparkContext) -> int:
    """How many tasks one executor runs at once; 0 if that is not known."""
    conf = settings_of(spark)
    cpus = int(conf.get("spark.task.cpus") or 1)
    if is_local(spark):
        found = _LOCAL_CORES.fullmatch(spark.master or "")
        cores = 1 if found is None else available_cores() if found[1] == "*" else int(found[1])
        return max(1, cores // cpus)
    chosen = conf.get("spark.executor.cores")
    if chosen is None and (spark.master or "").startswith(_ALL_CORES_OF_A_NODE):
        executors = count_executors(spark)
        inferred = executors > 0 and "spark.default.parallelism" not in conf
        return max(1, spark.defaultParallelism // executors // cpus) if inferred else 0
    return max(1, int(chosen or 1) // cpus)


def count_machines(slots: int, cores_per_task: int | None) -> int:
    """How many machines the planner counts on: as many as the widest tasks run at once. `cores_per_task` is None with a
    local master."""
    return max(1, slots // cores_per_task) if cores_per_task is not None else 1
