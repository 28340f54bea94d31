"""Whole columns as CSV fields and JSON values: the text of `values`, made by Arrow where that gives the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from sparkfusion.cli.values import Plain, encode, plain, text

ROWS_AT_ONCE = 65_536
_TEXT = pa.large_string()
# What may need more than to be copied; also every first and last letter that is not ASCII, which may be a space.
_SPECIAL_IN_CSV = r'^$|[,"\n\r]|^[^!-~]|[^!-~]$'
_SPECIAL_IN_JSON = r'["\\\x00-\x1f]'


def csv_field(value: Plain) -> str:
    """NULL is an empty field, the empty string a quoted one."""
    if value is None:
        return ""
    field = text(value)
    if not field or any(mark in field for mark in ',"\n\r') or field != field.strip():
        return '"' + field.replace('"', '""') + '"'
    return field


def csv_lines(batch: pa.RecordBatch) -> Iterator[str]:
    """The rows as CSV, many lines at a time, each with its end."""
    for piece in _pieces(batch):
        parts: list[str | pa.Array] = []
        for column in piece.columns:
            parts += [_column(column, csv_field, _SPECIAL_IN_CSV, "", ""), ","]
        yield _join_rows([*parts[:-1], "\n"])


def json_objects(names: list[str], batch: pa.RecordBatch, between: str) -> Iterator[str]:
    """The rows as JSON objects, many at a time, with `between` after each but the last."""
    for piece in _pieces(batch):
        parts: list[str | pa.Array] = []
        for name, column in zip(names, piece.columns, strict=True):
            parts += [f"{',' if parts else '{'}{encode(name)}:", _column(column, encode, _SPECIAL_IN_JSON, "null", '"')]
        yield _join_rows([*parts, "}" + between]).removesuffix(between)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, ROWS_AT_ONCE):
        yield batch.slice(start, ROWS_AT_ONCE)


def _join_rows(parts: list[str | pa.Array]) -> str:
    """The parts of every row one after the other, and the rows too: that is how Arrow holds them."""
    given = [pa.scalar(part, _TEXT) if isinstance(part, str) else part for part in parts]
    rows = pc.binary_join_element_wise(*given, pa.scalar("", _TEXT))
    size = pc.sum(pc.binary_length(rows)).as_py() or 0
    return str(rows.buffers()[2][:size], "utf-8") if size else ""


def _column(column: pa.Array, write: Callable[[Plain], str], special: str, null: str, quote: str) -> pa.Array:
    """Each value of a column as text. `special` finds the strings that `write` has to look at one by one."""
    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _strings(column.cast(_TEXT), write, special, null, quote)
    if types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind):
        return _strings(column.cast(pa.string()).cast(_TEXT), write, special, null, quote)
    if types.is_integer(kind) or types.is_boolean(kind):
        return pc.fill_null(column.cast(_TEXT), null)
    if types.is_float32(kind) or types.is_float64(kind):
        return pa.array([_number(value, write) for value in column.to_pylist()], _TEXT)
    if types.is_decimal(kind):
        shown = column.cast(pa.string())
        if not pc.any(pc.match_substring(shown, "E")).as_py():  # Arrow shortens some, which we do not
            return pc.fill_null(shown.cast(_TEXT), null)
    return pa.array([write(value) for value in plain(column)], _TEXT)


def _number(value: float | None, write: Callable[[Plain], str]) -> str:
    return repr(value) if value is not None and math.isfinite(value) else write(value)


def _strings(column: pa.Array, write: Callable[[Plain], str], special: str, null: str, quote: str) -> pa.Array:
    mark = pa.scalar(quote, _TEXT)
    plain_text = pc.binary_join_element_wise(mark, column, mark, pa.scalar("", _TEXT)) if quote else column
    found = pc.match_substring_regex(column, special)
    if pc.any(found).as_py():
        written = pa.array([write(value) for value in column.filter(found).to_pylist()], _TEXT)
        plain_text = pc.replace_with_mask(plain_text, pc.fill_null(found, False), written)
    return pc.fill_null(plain_text, null)
