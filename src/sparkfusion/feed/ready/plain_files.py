"""Tables of a table format (Delta, Iceberg) whose files hold all that its readers would see, and why others do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparkfusion.errors import UserError


class NotPlainFilesError(UserError):
    """A table whose files alone do not tell its rows: a plain scan of them would read it wrongly.

    Attributes:
        reason: why, without the table's name.
    """

    reason = ""


@dataclass(frozen=True)
class PlainFile:
    """A Parquet file of such a table.

    Attributes:
        path: of this machine, or a URL. `bytes`: its size, as the table's metadata says.
        values: of the partition columns that are not in the file.
    """

    path: str
    bytes: int
    values: tuple[Any, ...] = ()


def refusal(kind: str, name: str, reason: str) -> NotPlainFilesError:
    """The error about a table. `kind`: "Delta" or "Iceberg"."""
    error = NotPlainFilesError(f"{kind} table {name} cannot be read as plain files: {reason}")
    error.reason = reason
    return error
