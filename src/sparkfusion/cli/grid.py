"""Draw tables as text, line by line. rich would take milliseconds for a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.text import Text

from sparkfusion.cli.values import Plain, text

_LINES_AT_ONCE = 1000


def draw(names: Sequence[str], right: Sequence[bool], rows: Sequence[tuple[Plain, ...]]) -> Iterator[str]:
    """The lines of a table, each with its line end.

    Args:
        right: for each column, whether its values are right-aligned.

    >>> print("".join(draw(["n", "word"], [True, False], [(1, "one"), (20, None)])), end="")
    +----+------+
    |  n | word |
    +----+------+
    |  1 | one  |
    | 20 | NULL |
    +----+------+
    """
    columns = [[_cell(row[index]) for row in rows] for index in range(len(names))]
    heads = [_clean(name) for name in names]
    widths = [max(map(_width, [head, *cells])) for head, cells in zip(heads, columns, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"
    yield rule + _row(heads, widths, right) + rule
    for start in range(0, len(rows), _LINES_AT_ONCE):
        part = [column[start : start + _LINES_AT_ONCE] for column in columns]
        if all(map(_is_simple, part)):
            yield from _simple_rows(part, widths, right)
        else:
            yield from (_row(cells, widths, right) for cells in zip(*part, strict=True))
    yield rule


def draw_vertical(names: Sequence[str], rows: Sequence[tuple[Plain, ...]]) -> Iterator[str]:
    """A line for each value.

    >>> print("".join(draw_vertical(["n", "word"], [(1, "one"), (20, None)])), end="")
    ----- row 1 -----
    n    | 1
    word | one
    ----- row 2 -----
    n    | 20
    word | NULL
    """
    heads = [_clean(name) for name in names]
    width = max(map(_width, heads))
    padded = [head + " " * (width - _width(head)) for head in heads]
    margin = " " * width + " | "
    for number, row in enumerate(rows, 1):
        yield f"----- row {number:,} -----\n"
        for head, value in zip(padded, row, strict=True):
            yield f"{head} | " + _cell(value).replace("\n", "\n" + margin) + "\n"


def draw_markdown(names: Sequence[str], right: Sequence[bool], rows: Sequence[tuple[Plain, ...]]) -> Iterator[str]:
    """A table in Markdown.

    >>> print("".join(draw_markdown(["n", "a|b"], [True, False], [(1, "one"), (20, None)])), end="")
    | n | a\\|b |
    |---:|---|
    | 1 | one |
    | 20 | NULL |
    """
    yield "| " + " | ".join(map(_in_markdown, names)) + " |\n"
    yield "|" + "|".join("---:" if at_right else "---" for at_right in right) + "|\n"
    for row in rows:
        yield "| " + " | ".join(_in_markdown("NULL" if value is None else text(value)) for value in row) + " |\n"


def _in_markdown(shown: str) -> str:
    return _clean(shown).replace("\\", "\\\\").replace("|", "\\|").replace("\n", "<br>")


def _is_simple(cells: list[str]) -> bool:
    """Whether every cell has one line, and every character is one cell wide."""
    whole = "".join(cells)
    return whole.isascii() and "\n" not in whole


def _simple_rows(columns: list[list[str]], widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    padded = []
    for cells, width, at_right in zip(columns, widths, right, strict=True):
        padded.append([cell.rjust(width) if at_right else cell.ljust(width) for cell in cells])
    for shown in zip(*padded, strict=True):
        yield "| " + " | ".join(shown) + " |\n"


def _cell(value: Plain) -> str:
    return "NULL" if value is None else _clean(text(value))


def _clean(shown: str) -> str:
    """The text without control codes, and with spaces for tabs, as rich shows it."""
    if shown.isprintable():
        return shown
    made = Text(shown)
    made.expand_tabs(8)
    return made.plain


def _width(shown: str) -> int:
    if shown.isascii() and "\n" not in shown:
        return len(shown)
    return max(map(cell_len, shown.split("\n")))


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    """The lines of a row, as many as its highest value has."""
    if not any("\n" in cell for cell in cells):
        return _line(cells, widths, right)
    parts = [cell.split("\n") for cell in cells]
    height = max(map(len, parts))
    lines = zip(*([*part, *[""] * (height - len(part))] for part in parts), strict=True)
    return "".join(_line(line, widths, right) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    shown = []
    for cell, width, at_right in zip(cells, widths, right, strict=True):
        padding = " " * (width - _width(cell))
        shown.append(padding + cell if at_right else cell + padding)
    return "| " + " | ".join(shown) + " |\n"
