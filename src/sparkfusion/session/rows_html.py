"""A few rows as an HTML table, for notebooks. Every value is text: none of it can become a part of the page.

DataFusion's own HTML puts values into the page as they are, so a value may bring a script along.
"""

from __future__ import annotations

import html

import pyarrow as pa

_LONGEST = 5_000
"""Characters of a value that are shown."""

# The colours are those of the page, so that it can be read on a dark one too.
_STYLE = "border: 1px solid #8886; padding: 3px 8px; text-align: {side}; white-space: pre-wrap"
_TABLE = '<div style="max-height: 480px; overflow: auto"><table style="border-collapse: collapse">{rows}</table></div>'
_NOTE = '<div style="opacity: 0.7; font-size: 90%">{text}</div>'


def rows_html(rows: pa.Table, note: str = "") -> str:
    """The table, and a note below it. Numbers are on the right; NULL is dimmed.

    >>> "&lt;b&gt;" in rows_html(pa.table({"n": ["<b>"]}))
    True
    """
    sides = ["right" if _is_number(field.type) else "left" for field in rows.schema]
    columns = [_texts(column) for column in rows.columns]
    lines = ["".join(_cell("th", name, side) for name, side in zip(rows.column_names, sides, strict=True))]
    for row in range(rows.num_rows):
        lines.append("".join(_cell("td", values[row], side) for values, side in zip(columns, sides, strict=True)))
    table = _TABLE.format(rows="".join(f"<tr>{line}</tr>" for line in lines))
    return table + (_NOTE.format(text=html.escape(note)) if note else "")


def _cell(tag: str, text: str | None, side: str) -> str:
    style = _STYLE.format(side=side)
    if text is None:
        return f'<{tag} style="{style}; opacity: 0.5">NULL</{tag}>'
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    style += "; font-family: monospace" if "\n" in shown else ""
    return f'<{tag} style="{style}">{html.escape(shown)}</{tag}>'


def _is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """The values as text. Arrow formats times itself, because Python cannot represent all of Arrow's times."""
    if pa.types.is_temporal(column.type):
        try:
            texts: list[str | None] = column.cast(pa.string()).to_pylist()
            return texts
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    return [_text(value) for value in column]


def _text(value: pa.Scalar) -> str | None:
    try:
        return str(value.as_py()) if value.is_valid else None
    except (ValueError, OverflowError):  # a time that Python has not, inside of a list or a struct
        return f"({value.type})"
