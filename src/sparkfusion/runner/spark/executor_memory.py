"""The memory that Spark gives the Python workers of an executor, and whether our tasks fit into it.

DataFusion's memory is in Spark's Python workers, outside of the executor's heap. YARN and Kubernetes end a container
that uses more than the sum of its settings, so there tasks get their share of the overhead, and not of the machine.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass

from sparkfusion.config import MIB, Settings

Conf = Callable[[str], str | None]
"""Looks up a setting of Spark. None if it is not set."""

GOOD_TASK = 512 * MIB
"""With less, even small joins and sorts spill or fail."""
WORKER_BYTES = 200 * MIB
"""A Python worker of Spark with everything imported, after a small query: 193 MiB."""
MAPPED_BYTES = 512 * MIB
"""What a worker maps beside DataFusion's memory, where Spark limits its address space."""
_LEAST_TASK = 64 * MIB
_LEAST_OVERHEAD = 384 * MIB  # Spark's default for the JVM's own needs
_OVERHEAD_FACTOR = 0.1
_DEFAULT_HEAP = "1g"
_ENFORCED = ("yarn", "k8s://")
_SIZE = re.compile(r"\s*(\d+)\s*([a-z]*)\s*")
_UNITS = {"b": 1, "k": 1024, "m": MIB, "g": 1024 * MIB, "t": 1024**2 * MIB, "p": 1024**3 * MIB}
_log = logging.getLogger("sparkfusion")


@dataclass(frozen=True)
class ExecutorMemory:
    """What Spark's settings give one executor, in bytes.

    Attributes:
        slots: how many tasks it runs at once.
        python: `spark.executor.pyspark.memory`; 0 if it is not set.
        enforced: the cluster manager ends an executor that uses more.
    """

    cores: int
    slots: int
    heap: int
    overhead: int
    python: int
    enforced: bool

    @property
    def of_java(self) -> int:
        """The part of the overhead that the JVM itself needs: what Spark takes for it by default."""
        return max(_LEAST_OVERHEAD, int(self.heap * _OVERHEAD_FACTOR))

    def task_share(self, slots: int = 1) -> int:
        """The memory of one task that holds so many slots; 0 if nothing limits the executor."""
        found = self._most_for_task(slots)
        return 0 if found is None else max(_LEAST_TASK, found)

    def find_problem(self, chosen: int) -> str | None:
        """What is wrong with the settings, and the number to set. `chosen`: the memory of a task that the user set, or
        0."""
        wanted = chosen or GOOD_TASK
        most = self._most_for_task()
        if most is None or most >= wanted:
            return None
        size = _in_mebibytes(wanted)
        what = f"a task may use {size} (sparkfusion.task_memory_bytes)" if chosen else f"a task needs {size}"
        if self._most_address_space() == most:
            mapped, needed = self.python // self.cores, (wanted + MAPPED_BYTES) * self.cores
            return (
                f"{what}, but Spark lets each Python worker map only {_in_mebibytes(mapped)}, and DataFusion aborts "
                f"the process if it gets less. Set spark.executor.pyspark.memory to {_in_mebibytes(needed)} or more, "
                "or do not set it"
            )
        needed = self.of_java + self.slots * (wanted + WORKER_BYTES) - self.python
        tasks = "1 task" if self.slots == 1 else f"{self.slots} tasks"
        return (
            f"{what}, but an executor has {_in_mebibytes(self.overhead + self.python)} outside of its heap for the JVM "
            f"and for the Python workers of {tasks}, and the cluster ends it if it uses more. Set "
            f"spark.executor.memoryOverhead to {_in_mebibytes(needed)} or more"
        )

    def _most_for_task(self, slots: int = 1) -> int | None:
        found = [each for each in (self._most_overhead(slots), self._most_address_space()) if each is not None]
        return min(found) if found else None

    def _most_overhead(self, slots: int) -> int | None:
        for_python = self.overhead + self.python - self.of_java
        held = min(slots, self.slots)
        return max(0, for_python * held // self.slots - WORKER_BYTES) if self.enforced else None

    def _most_address_space(self) -> int | None:
        return max(0, self.python // self.cores - MAPPED_BYTES) if self.python else None


def read_memory(master: str, conf: Conf) -> ExecutorMemory:
    """What the settings of a Spark application say. Standalone and local masters enforce no overhead."""
    cores = int(conf("spark.executor.cores") or 1)
    heap = parse_size(conf("spark.executor.memory") or _DEFAULT_HEAP)
    return ExecutorMemory(
        cores=cores,
        slots=max(1, cores // int(conf("spark.task.cpus") or 1)),
        heap=heap,
        overhead=_overhead(heap, conf),
        python=parse_size(conf("spark.executor.pyspark.memory") or "0"),
        enforced=master.startswith(_ENFORCED),
    )


def _overhead(heap: int, conf: Conf) -> int:
    chosen = conf("spark.executor.memoryOverhead")
    if chosen is not None:
        return parse_size(chosen)
    factor = conf("spark.executor.memoryOverheadFactor") or conf("spark.kubernetes.memoryOverheadFactor")
    least = conf("spark.executor.minMemoryOverhead")
    return max(parse_size(least) if least else _LEAST_OVERHEAD, int(heap * float(factor or _OVERHEAD_FACTOR)))


def parse_size(text: str) -> int:
    """Bytes of a size as Spark writes memory: `4g`, `512m`; a bare number means mebibytes.

    >>> parse_size("4g") == parse_size("4096")
    True
    """
    found = _SIZE.fullmatch(text.lower())
    unit = _UNITS.get(found[2].removesuffix("ib").removesuffix("b") or found[2] or "m") if found is not None else None
    if found is None or unit is None:
        return 0  # Spark itself refuses it
    return int(found[1]) * unit


def _in_mebibytes(size: int) -> str:
    return f"{-(-size // MIB)}m"


class ExecutorBudget:
    """The memory of tasks on the executors of one Spark application. Says once what does not fit. Any thread may call
    any method."""

    def __init__(self, read: Callable[[], ExecutorMemory]) -> None:
        """`read`: called once, when it is first needed."""
        self._memory = functools.cache(read)
        self._warned: set[str] = set()

    def task_memory(self, settings: Settings, slots: int = 1) -> int:
        """The memory of one task: the user's, or `share`."""
        return settings.integer("task_memory_bytes") or self.share(slots)

    def share(self, slots: int = 1) -> int:
        """What Spark's settings leave to one task that holds so many slots; 0 leaves it to the machine that runs the
        task."""
        return self._memory().task_share(slots)

    def check(self, settings: Settings) -> None:
        """Warn if tasks do not fit. Called before a query starts."""
        problem = self._memory().find_problem(settings.integer("task_memory_bytes"))
        if problem is not None and problem not in self._warned:
            self._warned.add(problem)
            _log.warning("Spark's executors may be killed for lack of memory: %s", problem)
