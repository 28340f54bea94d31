"""From what Spark says of a failed job to an error of ours."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sparkfusion.errors import ExternalError, QueryCancelledError, SparkfusionError
from sparkfusion.ids import TaskKey

_CANCELLED = re.compile(r"\bJob (\d+ )?cancelled\b|SparkContext was shut down|stopped SparkContext")
_FAILED_TASK = re.compile(r"Task (\d+) in stage \S+ failed")
_PYTHON_ERROR = re.compile(r"(?!org\.|java\.)[\w.]+(Error|Exception): ")
_LOST = re.compile(r"Lost task \S+ in stage .*?\(TID \d+\) .*?: (.*)")


def spark_error(error: Exception, tasks: Sequence[TaskKey]) -> SparkfusionError:
    """Why a job of these tasks failed, in a few words.

    A task's own error comes back as data, so what arrives here is Spark's: a cancelled job, a crashed Python worker,
    a lost executor.
    """
    if isinstance(error, SparkfusionError):
        return error
    text = str(getattr(error, "java_exception", None) or error)
    if _CANCELLED.search(text):
        return QueryCancelledError("Spark cancelled the query's jobs")
    failed = _FAILED_TASK.search(text)
    where = tasks[int(failed[1])] if failed is not None and int(failed[1]) < len(tasks) else None
    return ExternalError(f"a Spark task failed: {_cause(text)}", where=where)


def _cause(text: str) -> str:
    """The last error of a Python traceback if there is one, else what Spark says of the lost task."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in reversed(lines):
        if _PYTHON_ERROR.match(line):
            return line
    lost = _LOST.search(text)
    return lost[1] if lost is not None else lines[0] if lines else "no reason was given"
