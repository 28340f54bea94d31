"""Whether an answer of ours is Spark's: the same types and rows, in the order that the query declares."""

from __future__ import annotations

import re

import pyarrow as pa

from sparkfusion import DataFrame, Session
from sparkfusion.verify import CompareOptions
from sparkfusion.verify.judge import Judge

_PLAIN_NAME = re.compile(r"\w+")


def difference(session: Session, frame: DataFrame, spark: pa.Table) -> str | None:
    """What is different, in words; None if nothing is."""
    ours = plain(frame.collect())
    theirs = plain(spark)
    for own, name in zip(ours.column_names, theirs.column_names, strict=False):
        if _PLAIN_NAME.fullmatch(name) and not name.isdigit() and own != name:
            return f"a column is called {own!r}, not {name!r}"
    if ours.schema.types != theirs.schema.types:
        return f"types {ours.schema.types}, expected {theirs.schema.types}"
    theirs = theirs.rename_columns(ours.column_names)
    plan = frame.to_datafusion().logical_plan()
    verdict = Judge(theirs, plan, session.context, CompareOptions(), view=plain).judge(ours)
    return None if verdict.right else verdict.comparison.describe()


def plain(table: pa.Table) -> pa.Table:
    """The same rows in types that do not say how values are stored: string views, names of items, NOT NULL."""
    return pa.table([column.cast(_plain(column.type)) for column in table.columns], names=table.column_names)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain(field.type)) for field in kind])
    return kind
