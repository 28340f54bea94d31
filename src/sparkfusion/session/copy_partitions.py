"""The columns that a COPY partitions by: they are in the names of directories, not in the files.

DataFusion 55 writes a row with a NULL there into the directory of some other value: 0, 1970-01-01 or whatever its
buffer holds. So these columns are turned into text before they are written, with Hive's name for NULL. The files do not
have these columns, so their type is visible nowhere.
"""

from __future__ import annotations

import re

import datafusion
import pyarrow as pa
from datafusion import functions

from sparkfusion.errors import UserError
from sparkfusion.feed.ready.hive import NULL_VALUE
from sparkfusion.session.sql_text import mask

_PARTITIONED = re.compile(r"\bPARTITIONED\s+BY\s*\(([^)]*)\)", re.IGNORECASE)
_KEEP = "keep_partition_by_columns"


def partition_names(tail: str) -> list[str]:
    """The columns that a COPY partitions by; the tail is what follows its source.

    >>> partition_names("TO 'x' STORED AS CSV PARTITIONED BY (a, b)")
    ['a', 'b']
    """
    found = _PARTITIONED.search(mask(tail))
    return [name.strip() for name in tail[found.start(1) : found.end(1)].split(",")] if found is not None else []


def check_column_left(columns: list[str], tail: str, *, kept: bool) -> None:
    """Refuse files without columns. `kept`: whether the session lets files hold their partition columns too."""
    names = partition_names(tail)
    if names and not set(columns) - set(names) and not kept and _KEEP not in tail.lower():
        raise UserError(
            f"cannot partition by {', '.join(names)}: all columns are partition columns, "
            "so no column would be left for the files",
            hint=f"select another column too, partition by fewer, or set datafusion.execution.{_KEEP} = true",
        )


def name_nulls(source: datafusion.DataFrame, tail: str) -> datafusion.DataFrame:
    """The rows to be written, with Hive's directory name instead of NULL in partition columns."""
    names = partition_names(tail)
    for field in source.schema():
        if field.nullable and field.name in names:
            text = _directory_name(datafusion.col(f'"{field.name}"'), field.type)
            if text is not None:
                source = source.with_column(field.name, functions.coalesce(text, datafusion.lit(NULL_VALUE)))
    return source


def _directory_name(column: datafusion.Expr, kind: pa.DataType) -> datafusion.Expr | None:
    """The text with which DataFusion names the directory of a value; None for types that it refuses."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = column.cast(pa.string())
    if pa.types.is_floating(kind):  # 2 and not 2.0
        return functions.regexp_replace(text, datafusion.lit(r"\.0$"), datafusion.lit(""))
    if pa.types.is_date64(kind):
        return column.cast(pa.date32()).cast(pa.string())
    texts = (pa.string(), pa.large_string(), pa.string_view())
    if kind in texts or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind):
        return text
    return None
