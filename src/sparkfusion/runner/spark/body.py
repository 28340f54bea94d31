"""What runs inside a Spark task. Shipped by reference: executors import it from their own sparkfusion."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from pyspark import TaskContext

from sparkfusion.errors import SparkfusionError
from sparkfusion.exchange.sink import FileSink
from sparkfusion.exchange.store import BorrowedStore
from sparkfusion.ids import TaskKey
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.run_task import run_task
from sparkfusion.worker.task import TaskReport, TaskSpec


@dataclass(frozen=True)
class SparkTask:
    """One task as it travels to an executor: what to run, where its frames go, how often Spark tries it."""

    spec: TaskSpec
    memory_home: str
    disk_home: str
    memory_budget: int
    compression: str
    attempts: int


@dataclass(frozen=True)
class SparkAnswer:
    """What comes back: a report, or an error that Spark shall not try again."""

    key: TaskKey
    report: TaskReport | None = None
    error: SparkfusionError | None = None


def run_on_executor(tasks: Iterable[bytes]) -> Iterator[bytes]:
    """Run the tasks of one Spark partition. An error that may be retried is raised, so that Spark does it."""
    _settle_once()
    for data in tasks:
        task: SparkTask = pickle.loads(data)
        yield pickle.dumps(_answer(task))


def _answer(task: SparkTask) -> SparkAnswer:
    """Files are named by Spark's own attempt id: it is unique, whatever is retried or speculated.

    The error of the last attempt comes back like one that cannot be retried, so that it keeps its kind and its words.
    """
    context = TaskContext.get()
    attempt, tried = (int(context.taskAttemptId()), context.attemptNumber() + 1) if context is not None else (0, 1)
    spec = replace(task.spec, key=replace(task.spec.key, attempt=attempt))
    store = BorrowedStore(task.memory_home, task.disk_home, task.memory_budget)
    try:
        report = run_task(spec, FileSink(spec.key, store, task.compression), CancelToken())
    except SparkfusionError as error:
        if error.retryable and tried < task.attempts:
            raise
        return SparkAnswer(task.spec.key, error=error)
    return SparkAnswer(task.spec.key, report)


@cache
def _settle_once() -> None:
    """Spark collects garbage after every task; what was imported need not be looked at again (75 to 59 ms a task)."""
    gc.collect()
    gc.freeze()
