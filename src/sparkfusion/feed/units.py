"""Work units: small descriptions of work, such as a file, a page or an offset."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from sparkfusion.errors import UserError

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MOST_BYTES = (1 << 63) - 1


@dataclass(frozen=True)
class WorkUnit:
    """Something to read: a page, an offset, a key. The feed's reader turns it into rows, in a task.

    Attributes:
        payload: whatever the reader needs: bytes, plain data, or anything that can be pickled.
        weight: how much work it is, compared to the other units of the feed.
        hosts: names of machines that reach the data faster. Tasks there get the unit first, if they are free.
    """

    payload: Any = None
    weight: float = field(default=1.0, kw_only=True)
    hosts: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if type(self.weight) not in (int, float) or not (self.weight > 0 and math.isfinite(self.weight)):
            raise UserError(f"a work unit's weight must be a number above 0, not {self.weight!r}")
        object.__setattr__(self, "hosts", tuple(self.hosts))


@dataclass(frozen=True)
class FileUnit(WorkUnit):
    """A file, or a part of one, that DataFusion scans natively.

    Attributes:
        path: a path or URL.
        size: its size in bytes. If you do not give it, the task looks it up, because DataFusion needs it.
        range: (start, end) in bytes: only the row groups or lines that begin there are read.
        partition_values: values of the feed's partition columns, for all rows of the file.
    """

    path: str = ""
    size: int | None = None
    range: tuple[int, int] | None = None
    partition_values: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        path: str | PathLike[str],
        size: int | None = None,
        *,
        range: tuple[int, int] | None = None,
        partition_values: Mapping[str, Any] | None = None,
        weight: float | None = None,
        hosts: tuple[str, ...] = (),
    ) -> None:
        check_path(str(path))
        span = _check_range(str(path), _check_size(str(path), size), range)
        read = size if span is None else span[1] - span[0]
        fields = {
            "payload": None,
            "path": str(path),
            "size": size,
            "range": span,
            "partition_values": dict(partition_values or {}),
            "weight": weight if weight is not None else max(1.0, float(read or 0)),
            "hosts": hosts,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        self.__post_init__()


def check_path(path: str) -> None:
    """Raise if no object store accepts a file of this name."""
    if not path:
        raise UserError("a file unit needs the path of a file")
    if _CONTROL.search(path):
        raise UserError(
            f"file {path!r} has a control character in its name, which object stores refuse", hint="rename the file"
        )
    try:
        path.encode()
    except UnicodeEncodeError:
        raise UserError(f"file {path!r} has a name that is not valid UTF-8", hint="rename the file") from None


def check_span(path: str, span: tuple[int, int] | None, size: int) -> None:
    """Raise if a range goes beyond its file."""
    if span is not None and span[1] > size:
        raise UserError(f"range {span} of file {path!r} ends after the end of the file, which has {size:,} bytes")


def _check_size(path: str, size: int | None) -> int | None:
    if size is not None and (type(size) is not int or not 0 <= size <= _MOST_BYTES):
        raise UserError(f"the size of file {path!r} must be its number of bytes, not {size!r}")
    return size


def _check_range(path: str, size: int | None, span: object) -> tuple[int, int] | None:
    if span is None:
        return None
    ends = tuple(span) if isinstance(span, Sequence) else ()
    if len(ends) != 2 or not all(type(end) is int for end in ends) or not 0 <= ends[0] <= ends[1] <= _MOST_BYTES:
        raise UserError(f"the range of file {path!r} must be (start, end) in bytes, start first, not {span!r}")
    if size is not None:
        check_span(path, ends, size)
    return ends
