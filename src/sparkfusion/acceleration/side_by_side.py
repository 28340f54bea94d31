"""Show two texts in two columns, or one after the other if the terminal is too narrow."""

from __future__ import annotations

from itertools import zip_longest

LEAST_WIDTH = 140
"""The least width for two columns. Plans in narrower columns are hard to read."""

_GAP = " │ "


def side_by_side(left: tuple[str, str], right: tuple[str, str], width: int) -> str:
    """Two texts, each with a title. A line that is too long continues in the next one.

    >>> print(side_by_side(("a", "one"), ("b", "two"), 80))
    ── a ──
    one
    <BLANKLINE>
    ── b ──
    two
    """
    if width < LEAST_WIDTH:
        return "\n\n".join(f"── {title} ──\n{text}" for title, text in (left, right))
    room = (width - len(_GAP)) // 2
    columns = [[title, "─" * room, *_fold(text, room)] for title, text in (left, right)]
    return "\n".join(f"{one:<{room}}{_GAP}{other}".rstrip() for one, other in zip_longest(*columns, fillvalue=""))


def _fold(text: str, room: int) -> list[str]:
    """The text in lines that fit. The rest of a long line is indented like its first word."""
    lines = []
    for line in text.expandtabs().splitlines():
        indent = min(len(line) - len(line.lstrip(" │├└┌:+-")) + 2, room // 2)
        lines.append(line[:room])
        rest = line[room:]
        while rest:
            lines.append(" " * indent + rest[: room - indent])
            rest = rest[room - indent :]
    return lines
