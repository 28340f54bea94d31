"""Convert whole columns to CSV fields and JSON values. Arrow does it where the text is the same as that of `values`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, types

from sparkfusion.cli.values import Plain, encode, plain, text

ROWS_AT_ONCE = 65_536
_TEXT = pa.large_string()
_ZERO, _NOTHING = pa.scalar(".0", _TEXT), pa.scalar("", _TEXT)
# Texts that may need quotes. A first or last character that is not ASCII counts too: it may be a space.
_SPECIAL_IN_CSV = r'^$|[,"\n\r]|^[^!-~]|[^!-~]$'
_SURELY_QUOTED_IN_CSV = r'^$|[,"\n\r]|^[ \t]|[ \t]$'
_SPECIAL_IN_JSON = r'["\\\x00-\x1f]'
_MARKS_IN_CSV = (b",", b'"', b"\n", b"\r")
_RARE_SPACES = b"\t\x0b\x0c\x1c\x1d\x1e\x1f"
# Arrow and Python write the same digits between these sizes, and neither writes an exponent.
_LEAST_PLAIN, _MOST_PLAIN = 1e-4, 1e10
_PLAIN_SCALES = range(7)  # Arrow writes no exponent for decimals with these numbers of digits after the point
_LINE_END = pa.py_buffer(b"\n")
_FIRST_ROWS = 1024
_MANY = 0.3  # if more than this share of the values need a change, changing all of them is faster than selecting these


def csv_field(value: Plain) -> str:
    """NULL is an empty field, the empty string a quoted one."""
    if value is None:
        return ""
    field = text(value)
    if not field or any(mark in field for mark in ',"\n\r') or field != field.strip():
        return '"' + field.replace('"', '""') + '"'
    return field


def csv_lines(batch: pa.RecordBatch) -> Iterator[pa.Buffer]:
    """The rows as CSV in UTF-8, many lines at a time, each with its end."""
    for piece in _pieces(batch):
        columns = [_csv_column(column) for column in piece.columns]
        if all(bare for _, bare in columns):
            yield _write_bare([column for column, _ in columns])
        else:
            first, *fields = (_csv_text(column) for column, _ in columns)
            # the end of a line is put before the next line: the first column is mostly faster to copy than the last
            yield _join_rows([_join(["\n", first]), *fields], between=",")[1:]
            yield _LINE_END


def json_objects(names: list[str], batch: pa.RecordBatch, between: str) -> Iterator[str]:
    """The rows as JSON objects, many at a time, with `between` after each but the last."""
    for piece in _pieces(batch):
        parts: list[str | pa.Array] = []
        for name, column in zip(names, piece.columns, strict=True):
            parts += [f"{',' if parts else '{'}{encode(name)}:", _json_column(column)]
        yield str(_join_rows([*parts, "}" + between]), "utf-8").removesuffix(between)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, ROWS_AT_ONCE):
        yield batch.slice(start, ROWS_AT_ONCE)


def _join_rows(parts: list[str | pa.Array], between: str = "") -> pa.Buffer:
    """The concatenated parts of every row, all rows in one buffer, as Arrow holds them."""
    return _text_of(_join(parts, between))


def _join(parts: list[str | pa.Array], between: str = "") -> pa.Array:
    """The parts of every row as one text."""
    given = [pa.scalar(part, _TEXT) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*given, pa.scalar(between, _TEXT))


def _text_of(column: pa.Array) -> pa.Buffer:
    """The concatenated values of a column of `_TEXT`, including the bytes behind NULLs."""
    data = column.buffers()[2]
    starts = _starts(column)
    return pa.py_buffer(b"") if data is None else data[starts[0].as_py() : starts[-1].as_py()]


def _starts(column: pa.Array) -> pa.Array:
    """Where the values of a column of `_TEXT` start in its bytes, and where the last one ends."""
    offsets = column.buffers()[1]
    return pa.Array.from_buffers(pa.int64(), len(column) + 1, [None, offsets], offset=column.offset)


def _csv_column(column: pa.Array) -> tuple[pa.Array, bool]:
    """A column for `_csv_text`, and whether it is bare: Arrow's own writer makes the same fields of it."""
    column = _without_dictionary(column)
    kind = column.type
    if _is_text(kind):
        return _csv_strings(column.cast(_TEXT))
    if types.is_integer(kind) or types.is_boolean(kind) or _is_point_in_time(kind):
        return column, True
    return _csv_text(column), bool(types.is_floating(kind) or types.is_decimal(kind))


def _csv_text(column: pa.Array) -> pa.Array:
    """The CSV fields of a column, which may already be fields."""
    return pc.fill_null(column, "") if column.type == _TEXT else _column(column, csv_field, "", "")


def _write_bare(columns: list[pa.Array]) -> pa.Buffer:
    """Write rows of fields without quotes, in half the time that joining the fields takes.

    Arrow's writer quotes every text or none, so it cannot write a column in which only some texts need quotes.
    """
    out = pa.BufferOutputStream()
    rows = pa.RecordBatch.from_arrays(columns, [str(number) for number in range(len(columns))])
    csv.write_csv(rows, out, csv.WriteOptions(include_header=False, batch_size=ROWS_AT_ONCE, quoting_style="none"))
    return out.getvalue()


def _json_column(column: pa.Array) -> pa.Array:
    column = _without_dictionary(column)
    return _json_strings(column.cast(_TEXT)) if _is_text(column.type) else _column(column, encode, "null", '"')


def _json_strings(column: pa.Array) -> pa.Array:
    found = pc.fill_null(pc.match_substring_regex(column, _SPECIAL_IN_JSON), False)
    return pc.fill_null(_replace(_between_quotes(column, '"'), found, column, encode), "null")


def _without_dictionary(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if types.is_dictionary(column.type) else column


def _is_text(kind: pa.DataType) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_point_in_time(kind: pa.DataType) -> bool:
    return bool(types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind))


def _column(column: pa.Array, write: Callable[[Plain], str], null: str, quote: str) -> pa.Array:
    """The values of a column without strings, as text. Arrow converts them if the text is the same as that of
    `write`."""
    kind = column.type
    if _is_point_in_time(kind):
        return pc.fill_null(_between_quotes(column.cast(pa.string()).cast(_TEXT), quote), null)  # nothing special
    if types.is_integer(kind) or types.is_boolean(kind):
        return pc.fill_null(column.cast(_TEXT), null)
    if types.is_float32(kind) or types.is_float64(kind):
        bits = column.cast(pa.float64()).view(pa.int64())  # 0.0 and -0.0 must be two values
        return pc.fill_null(_distinct(bits, lambda values: _floats(values.view(pa.float64()), write)), null)
    if types.is_decimal(kind):
        return pc.fill_null(_distinct(column, lambda values: _decimals(values, write)), null)
    return pa.array([write(value) for value in plain(column)], _TEXT)


def _distinct(column: pa.Array, show: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The result of `show` for a column. If the first rows have few different values, `show` gets each value once: a
    column of discounts then takes a tenth of the time."""
    first = column.slice(0, _FIRST_ROWS)
    if pc.count_distinct(first).as_py() > len(first) // 4:
        return show(column)
    encoded = column.dictionary_encode()
    return show(encoded.dictionary).take(encoded.indices)


def _decimals(column: pa.Array, write: Callable[[Plain], str]) -> pa.Array:
    shown = column.cast(pa.string())
    # Arrow writes some values with an exponent, which we do not
    if column.type.scale not in _PLAIN_SCALES and pc.any(pc.match_substring(shown, "E")).as_py():
        return _write_each(column, write)
    return shown.cast(_TEXT)


def _floats(column: pa.Array, write: Callable[[Plain], str]) -> pa.Array:
    """Arrow converts the values that Python's `repr` writes without an exponent. The others are converted one by
    one."""
    size = pc.abs(column)
    usual = pc.or_(pc.and_(pc.greater_equal(size, _LEAST_PLAIN), pc.less(size, _MOST_PLAIN)), pc.equal(size, 0.0))
    shown = column.cast(_TEXT)
    whole = pc.equal(pc.floor(column), column)  # Arrow writes 5, and Python 5.0
    if (pc.mean(whole).as_py() or 0.0) > _MANY:
        shown = _join([shown, pc.if_else(whole, _ZERO, _NOTHING)])
    elif pc.any(whole).as_py():
        shown = pc.replace_with_mask(shown, whole, _join([shown.filter(whole), ".0"]))
    return _replace(shown, pc.fill_null(pc.invert(usual), False), column, write)


def _replace(shown: pa.Array, odd: pa.Array, column: pa.Array, write: Callable[[Plain], str]) -> pa.Array:
    """`shown`, with the result of `write` for the values of `column` at which `odd` is true."""
    if not pc.any(odd).as_py():
        return shown
    return pc.replace_with_mask(shown, odd, _write_each(column.filter(odd), write))


def _csv_strings(column: pa.Array) -> tuple[pa.Array, bool]:
    """A column of strings with quotes where they are needed, and whether none needs quotes."""
    whole = _text_of(column).to_pybytes()
    clear = whole.isascii() and not any(letter in whole for letter in _RARE_SPACES)
    found = _find_quoted(column, whole) if clear else pc.match_substring_regex(column, _SPECIAL_IN_CSV)
    found = pc.fill_null(found, False)
    if not pc.any(found).as_py():
        return column, True
    chosen = column.filter(found)
    return pc.replace_with_mask(column, found, _quote(chosen, whole) if clear else _csv_fields(chosen)), False


def _find_quoted(column: pa.Array, whole: bytes) -> pa.Array:
    """Which texts need quotes, if the only spaces in them are ASCII spaces. `whole` is all texts concatenated.

    The characters that need quotes are removed from `whole`, and texts that changed are those that need quotes.
    Searching each text, with a regular expression or for one character, takes several times as long.
    """
    found = pc.equal(pc.binary_length(column), 0)
    unmarked = whole
    for mark in _MARKS_IN_CSV:
        unmarked = unmarked.replace(mark, b" ")
    if unmarked is not whole:
        found = pc.or_(found, pc.not_equal(column, _with_text(column, unmarked)))
    if b" " in whole:
        found = pc.or_(found, pc.or_(pc.starts_with(column, " "), pc.ends_with(column, " ")))
    return found


def _quote(column: pa.Array, whole: bytes) -> pa.Array:
    return _between_quotes(pc.replace_substring(column, '"', '""') if b'"' in whole else column, '"')


def _with_text(column: pa.Array, text: bytes) -> pa.Array:
    """A column of `_TEXT` with the same lengths and other bytes. It has no NULLs: the bytes behind them become
    values."""
    starts = _starts(column)
    starts = pc.subtract(starts, starts[0])
    return pa.Array.from_buffers(_TEXT, len(column), [None, starts.buffers()[1], pa.py_buffer(text)])


def _csv_fields(column: pa.Array) -> pa.Array:
    """The result of `csv_field` for strings. Arrow converts those that clearly need quotes; the others are converted
    one by one."""
    clear = pc.match_substring_regex(column, _SURELY_QUOTED_IN_CSV)
    quoted = _between_quotes(pc.replace_substring(column, '"', '""'), '"')
    unclear = pc.invert(clear)
    if pc.any(unclear).as_py():
        quoted = pc.replace_with_mask(quoted, unclear, _write_each(column.filter(unclear), csv_field))
    return quoted


def _write_each(column: pa.Array, write: Callable[[Plain], str]) -> pa.Array:
    return pa.array([write(value) for value in column.to_pylist()], _TEXT)


def _between_quotes(column: pa.Array, quote: str) -> pa.Array:
    mark = pa.scalar(quote, _TEXT)
    return pc.binary_join_element_wise(mark, column, mark, pa.scalar("", _TEXT)) if quote else column
