"""All errors. The kind of an error decides whether its task is retried.

| kind     | whose fault                          | retried     |
|----------|--------------------------------------|-------------|
| user     | the query, the data, a UDF           | no          |
| resource | memory, disk, plan size              | no          |
| external | files, network, a lost worker        | yes         |
| internal | ours, or DataFusion's                | yes         |
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal

from sparkfusion.ids import StageId, TaskKey
from sparkfusion.wording import for_users

ErrorKind = Literal["user", "resource", "external", "internal"]


class SparkfusionError(Exception):
    """The base of all errors of sparkfusion: what happened, where, and what to do about it."""

    kind: ClassVar[ErrorKind] = "internal"

    def __init__(self, message: str, *, where: TaskKey | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.where, self.hint)

    @property
    def retryable(self) -> bool:
        return self.kind in ("external", "internal")

    def __str__(self) -> str:
        parts = [self.message]
        if self.where is not None:
            parts.append(f"  in {self.where}")
        if self.hint is not None:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)


def _rebuild(kind: type[SparkfusionError], message: str, where: TaskKey | None, hint: str | None) -> SparkfusionError:
    return kind(message, where=where, hint=hint)


class UserError(SparkfusionError):
    """The query, the data or a function of the user is wrong. The same call would fail again."""

    kind: ClassVar[ErrorKind] = "user"


class ProtocolError(UserError):
    """Bytes that are not a message of ours, or a message with a value that is not allowed."""


class ResourceError(SparkfusionError):
    """Memory, disk or a size limit ran out."""

    kind: ClassVar[ErrorKind] = "resource"


class ExternalError(SparkfusionError):
    """Something outside failed: a file, the network, a worker."""

    kind: ClassVar[ErrorKind] = "external"


class UnavailableError(ExternalError):
    """A service did not answer several requests. Retrying the whole task would not help."""

    @property
    def retryable(self) -> bool:
        return False


class LostInputError(ExternalError):
    """Frames of finished tasks could not be read. The coordinator has the tasks run again."""

    def __init__(
        self,
        message: str,
        *,
        lost: Sequence[tuple[StageId, int, int]] = (),
        where: TaskKey | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.lost = tuple(lost)


class TaskCrashError(ExternalError):
    """The process that ran a task died. The task is retried once; after a second crash the query fails."""


class WorkerLostError(ExternalError):
    """A worker was lost while it ran a task. After too many losses the task is not retried: it may be the cause."""


class InternalError(SparkfusionError):
    """A defect of sparkfusion or of DataFusion."""

    kind: ClassVar[ErrorKind] = "internal"


class UnknownSettingError(UserError, KeyError):
    """No setting has that name. Also a KeyError, so that `session.config` is a mapping like any other."""


class PlanTooLargeError(ResourceError):
    """A plan is over `sparkfusion.max_plan_bytes`."""


class PlanTooDeepError(ResourceError):
    """A plan is nested so deeply that decoding it could overflow the stack."""


class StoreFullError(ResourceError):
    """There is no space left for intermediate data (frames)."""


class WireFormatError(InternalError):
    """DataFusion's plan format is not the one this version of sparkfusion knows."""


class QueryCancelledError(UserError):
    """The query was cancelled: by Ctrl-C, `cancel()` or a closed stream."""


class VerificationError(SparkfusionError):
    """The distributed answer is not the single-node answer."""


PANICKED = "DataFusion panicked"
"""How the message of a panic begins."""

_ASYNC_PANIC = "rust future panicked"
_FIRST_WORDS = 300
_PYTHON_ERROR = re.compile(r"PyErr \{ type: <class '[^']+'>, value: (.*?), traceback: (.*)\}", re.DOTALL)
_FIRST_CALL = re.compile(r'File \\?"(.+?)\\?", line (\d+), in (.+?)(?:\\n|\n)')
_MEMORY_MARKS = ("Resources exhausted", "Not enough memory to continue external sort")
_RESOURCE_MARKS = (*_MEMORY_MARKS, "No space left on device", "Disk quota exceeded", "out of memory")
_INTERNAL_MARKS = ("Internal error", "panicked")
_NOT_IN_CSV = "is not supported in CSV"
_UNSUPPORTED_MARK = "This feature is not implemented"
_EXTERNAL_MARKS = ("Object Store error", "IoError", "IO error", "Io error", "Connection refused", "timed out")
_USER_MARKS = ("not found", "NotFound", "No such file", "Permission denied", "Parquet error", "UDF")


def classify(error: BaseException, where: TaskKey | None = None) -> SparkfusionError:
    """Turn an error of DataFusion, Arrow, the operating system or a UDF into an error of ours, with the same message.

    DataFusion raises plain `Exception`s, so the kind has to be read from the message.

    >>> classify(Exception("DataFusion error: Arrow error: Divide by zero error")).kind
    'user'
    >>> classify(OSError(28, "No space left on device")).kind
    'resource'
    >>> classify(Exception("DataFusion error: This feature is not implemented: DISTRIBUTE BY")).kind
    'user'
    """
    if isinstance(error, SparkfusionError):
        if error.where is None:
            error.where = where
        return error
    text = clean_message(error)
    if is_panic(error):
        text = f"{PANICKED}: {text}"
    found = _class_of(error, text)(text, where=where)
    found.__cause__ = error
    if is_memory_shortage(found):
        found.hint = "raise sparkfusion.task_memory_bytes, or lower sparkfusion.bytes_per_partition for smaller tasks"
    elif _NOT_IN_CSV in text:
        found.hint = "CSV has no nested values: leave the column out, make a text of it, or write Parquet or JSON"
    elif isinstance(found, UserError) and _UNSUPPORTED_MARK in text:
        found.hint = "DataFusion does not support this yet; write the query in another way"
    return found


def is_panic(error: BaseException) -> bool:
    """Whether native code panicked. In Python that is a `BaseException`, which `except Exception` does not catch."""
    return type(error).__name__ == "PanicException"


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Used around calls of DataFusion. A panic becomes an `InternalError`; other exceptions are not changed."""
    try:
        yield
    except BaseException as error:
        if is_panic(error):
            raise classify(error) from error
        raise


def is_memory_shortage(error: BaseException) -> bool:
    """Whether a task failed because an operator got no more memory. False if disk or another resource ran out.

    >>> is_memory_shortage(classify(Exception("Resources exhausted: Failed to allocate 8 MB")))
    True
    """
    return isinstance(error, ResourceError) and any(mark in error.message for mark in _MEMORY_MARKS)


def clean_message(error: BaseException) -> str:
    """The message without DataFusion's prefix and its request to file a bug report; a Python error is shown alone, with
    the function that DataFusion called.

    >>> clean_message(Exception("PyErr { type: <class 'ValueError'>, value: ValueError('no'), traceback: None }"))
    "ValueError('no')"
    """
    text = str(error) or type(error).__name__
    text = text.replace(_ASYNC_PANIC, PANICKED).split("\nThis issue was likely caused by a bug in DataFusion")[0]
    return for_users(_PYTHON_ERROR.sub(_python_error, text.removeprefix("DataFusion error: ").strip()))


def _python_error(found: re.Match[str]) -> str:
    value, trace = found.groups()
    called = _FIRST_CALL.search(trace)
    return f"{value} in the Python function {called[3]} ({called[1]}, line {called[2]})" if called else value


def first_words(error: BaseException) -> str:
    """The message in one line and without a traceback, to be quoted inside another message."""
    line = clean_message(error).splitlines()[0]
    for mark in (", traceback:", "Traceback (most"):
        line = line.split(mark)[0]
    return line if len(line) <= _FIRST_WORDS else line[:_FIRST_WORDS] + "…"


def _class_of(error: BaseException, text: str) -> type[SparkfusionError]:
    if is_panic(error):
        return InternalError
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StoreFullError
        if error.errno in (errno.ENOENT, errno.EACCES, errno.EISDIR, errno.ENOTDIR):
            return UserError
        return ExternalError
    if isinstance(error, MemoryError) or any(mark in text for mark in _RESOURCE_MARKS):
        return ResourceError
    if any(mark in text for mark in _USER_MARKS):
        return UserError
    if any(mark in text for mark in _INTERNAL_MARKS):
        return InternalError
    if any(mark in text for mark in _EXTERNAL_MARKS):
        return ExternalError
    return UserError
