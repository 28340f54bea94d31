"""Turn Spark's messages about a failed job into errors of ours."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sparkfusion.errors import ExternalError, QueryCancelledError, SparkfusionError, TaskCrashError, WorkerLostError
from sparkfusion.ids import TaskKey

_CANCELLED = re.compile(
    r"\bJob (\d+ )?cancelled\b|SparkContext was shut down|stopped SparkContext"
    r"|\[OPERATION_CANCELED\]|\[NO_ACTIVE_SESSION\]|SESSION_CLOSED\]"  # Spark Connect
)
_FAILED_TASK = re.compile(r"Task (\d+) in stage \S+ failed(?: (\d+) times)?")
_PYTHON_ERROR = re.compile(r"(?!org\.|java\.)[\w.]+(Error|Exception): ")
_LOST = re.compile(r"Lost task \S+ in stage .*?\(TID \d+\) .*?: (.*)")

_DEATHS = (
    (TaskCrashError, "Python worker exited unexpectedly", "the Python worker that ran the task died"),
    (WorkerLostError, "ExecutorLostFailure", "the executor that ran the task was lost"),
)
_DEATH_HINT = (
    "possible causes: a Python function of the query, a native library that it uses, or too little memory "
    "(spark.executor.memoryOverhead); see the executor's log"
)


def spark_error(error: Exception, tasks: Sequence[TaskKey]) -> SparkfusionError:
    """Why a job of these tasks failed, in a few words.

    A task's own error comes back as data. So what arrives here is Spark's: a cancelled job, a crashed Python worker, or
    a lost executor.
    """
    if isinstance(error, SparkfusionError):
        return error
    text = str(getattr(error, "java_exception", None) or error)
    if _CANCELLED.search(text):
        return QueryCancelledError("Spark cancelled the query's jobs")
    failed = _FAILED_TASK.search(text)
    where = tasks[int(failed[1])] if failed is not None and int(failed[1]) < len(tasks) else None
    cause = _cause(text)
    for kind, mark, words in _DEATHS:
        if mark in cause:
            return kind(f"{words}{_tries(failed)}: {cause}", where=where, hint=_DEATH_HINT)
    return ExternalError(f"a Spark task failed: {cause}", where=where)


def error_of(failure: SparkfusionError, key: TaskKey) -> SparkfusionError:
    """The error for one task of a failed job. If a process died, only the task that ran in it is to blame."""
    if not isinstance(failure, TaskCrashError | WorkerLostError) or failure.where is None or failure.where == key:
        return failure
    return ExternalError(f"task {failure.where.task} of the same Spark job failed: {failure.message}", where=key)


def _tries(failed: re.Match[str] | None) -> str:
    tries = int(failed[2] or 1) if failed is not None else 1
    return f", after Spark tried it {tries} times" if tries > 1 else ""


def _cause(text: str) -> str:
    """The last error of a Python traceback if there is one, else what Spark says of the lost task."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in reversed(lines):
        if _PYTHON_ERROR.match(line):
            return line
    lost = _LOST.search(text)
    return lost[1] if lost is not None else lines[0] if lines else "no reason was given"
