"""Hive partitioning: directories named `column=value`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa

from sparkfusion.errors import UserError

HiveColumn = tuple[str, pa.DataType]
Values = Mapping[str, str | None]
"""Values of partition columns as directories spell them; None is NULL."""

NULL_VALUE = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?\d{1,18}")


def partition_of(directory: str) -> tuple[str, str | None] | None:
    """Column and value of a directory's name; None for other names.

    >>> partition_of("day=2024-01-01"), partition_of("at=a%2Fb"), partition_of("x=__HIVE_DEFAULT_PARTITION__")
    (('day', '2024-01-01'), ('at', 'a/b'), ('x', None))
    """
    name, equals, value = directory.partition("=")
    if not equals or not name:
        return None
    return unquote(name), None if value == NULL_VALUE else unquote(value)


def infer_type(values: Sequence[str | None]) -> pa.DataType:
    """int64 if all values are integers, else string."""
    known = [value for value in values if value is not None]
    return pa.int64() if known and all(_INTEGER.fullmatch(value) for value in known) else pa.string()


def known_values(values: Values, columns: Sequence[HiveColumn]) -> dict[str, str | None]:
    """The values that a directory has for these columns only."""
    return {name: values[name] for name, _ in columns if name in values}


def check_values(path: str, values: Values, columns: Sequence[HiveColumn], *, inferred: bool) -> dict[str, str | None]:
    """The values of a file's partition columns. Raises a `UserError` if it has other columns, or a value of the wrong
    type."""
    names = [name for name, _ in columns]
    missing = [name for name in names if name not in values]
    if missing or (inferred and len(values) > len(names)):
        has = ", ".join(values) or "none"
        raise UserError(
            f"{path!r} has the partition columns {has}; the table has {', '.join(names) or 'none'}",
            hint="pass hive=False to ignore such directories, or name the columns: hive=[(name, type), …]",
        )
    return known_values(values, columns)


def check_type(path: str, name: str, value: str | None, type: pa.DataType) -> None:
    try:
        pa.scalar(value, pa.string()).cast(type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UserError(
            f"{path!r}: the partition value {value!r} of column {name!r} is not a valid {type}",
            hint=f"hive=[({name!r}, pyarrow.string()), …] takes any value",
        ) from None
