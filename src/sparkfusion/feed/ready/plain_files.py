"""Tables of a table format (Delta, Iceberg) that can be read as plain Parquet files, and the error for those that
cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparkfusion.errors import UserError


class NotPlainFilesError(UserError):
    """A plain scan of the table's files would return wrong rows.

    Attributes:
        reason: why, without the table's name.
    """

    reason = ""


@dataclass(frozen=True)
class PlainFile:
    """A Parquet file of such a table.

    Attributes:
        path: a path of this machine, or a URL. `bytes`: its size in the table's metadata.
        values: the values of partition columns that are not in the file.
    """

    path: str
    bytes: int
    values: tuple[Any, ...] = ()


def refusal(kind: str, name: str, reason: str) -> NotPlainFilesError:
    """The error about a table. `kind`: "Delta" or "Iceberg"."""
    error = NotPlainFilesError(f"{kind} table {name} cannot be read as plain files: {reason}")
    error.reason = reason
    return error
