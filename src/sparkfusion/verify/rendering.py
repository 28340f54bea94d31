"""Values as text for messages. Never raises. Nanosecond times need no pandas, and long values are cut."""

from __future__ import annotations

import pyarrow as pa

from sparkfusion.verify.encode import plain

LONGEST = 80


def render_row(table: pa.Table, row: int) -> str:
    """One row as `name=value, …`."""
    if table.num_columns == 0:
        return "(a row without columns)"
    columns = zip(table.column_names, table.columns, strict=True)
    return ", ".join(f"{name}={render_value(column, row)}" for name, column in columns)


def render_value(column: pa.ChunkedArray, row: int) -> str:
    """One value: strings and bytes quoted, null as NULL, anything else as Arrow prints it."""
    scalar = column[row]
    if not scalar.is_valid:
        return "NULL"
    text = _text(scalar)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _text(scalar: pa.Scalar) -> str:
    try:
        return repr(scalar.as_py()) if not pa.types.is_temporal(scalar.type) else _temporal_text(scalar)
    except (ValueError, pa.ArrowException, OverflowError):
        return f"<{scalar.type}>"


def _temporal_text(scalar: pa.Scalar) -> str:
    """A time as ISO text; a duration or an interval as its parts."""
    try:
        return str(plain(pa.array([scalar], scalar.type)).cast(pa.string())[0].as_py())
    except pa.ArrowException:
        return str(scalar.as_py())
