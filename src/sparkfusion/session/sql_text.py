"""SQL text without what only looks like SQL: comments, and whatever is inside quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

# An unterminated one runs to the end: DataFusion's own message about it is better than ours.
_OPAQUE = re.compile(
    r"""
      (?P<line_comment> --[^\n]* )
    | (?P<comment> /\* )
    | (?P<quoted> \b[eE]'(?:[^'\\]|\\.|'')*(?:'|\Z) | '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | `[^`]*(?:`|\Z) )
    | (?P<dollar> \$(?:[A-Za-z_]\w*)?\$ )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@lru_cache(maxsize=4)
def mask(sql: str) -> str:
    """The text, as long as it is, with blanks for comments and an `x` for each character inside quotes.

    So keywords, parentheses and semicolons are found where they are SQL, and their positions hold in the text itself.
    Several modules look at a statement; it is scanned once.

    >>> mask("select ';)' -- done;")
    "select 'xx'         "
    """
    parts, position = [], 0
    for start, end, is_comment in _opaque_parts(sql):
        text = sql[start:end]
        parts.append(sql[position:start])
        parts.append(" " * len(text) if is_comment else text[0] + "x" * (len(text) - 2) + text[1:][-1:])
        position = end
    return "".join(parts) + sql[position:]


def without_comments(sql: str) -> str:
    """The text with a blank for each comment.

    >>> without_comments("to 'a--b' /* a file */ stored as csv")
    "to 'a--b'   stored as csv"
    """
    parts, position = [], 0
    for start, end, is_comment in _opaque_parts(sql):
        if is_comment:
            parts.append(sql[position:start])
            position = end
    return " ".join([*parts, sql[position:]])


def _opaque_parts(sql: str) -> Iterator[tuple[int, int, bool]]:
    """Where comments and quoted texts begin and end, and whether it is a comment."""
    position = 0
    while found := _OPAQUE.search(sql, position):
        position = found.end()
        if found["comment"]:
            position = _end_of_comment(sql, position)
        elif found["dollar"]:
            closing = sql.find(found["dollar"], position)
            position = len(sql) if closing < 0 else closing + len(found["dollar"])
        yield found.start(), position, bool(found["comment"] or found["line_comment"])


def closing_parenthesis(masked: str, start: int) -> int | None:
    """Where the parenthesis ends that was opened just before `start`; None if nothing closes it."""
    depth = 1
    for at in range(start, len(masked)):
        depth += {"(": 1, ")": -1}.get(masked[at], 0)
        if depth == 0:
            return at
    return None


def _end_of_comment(sql: str, position: int) -> int:
    """Where a block comment ends that was opened before `position`; they nest."""
    depth = 1
    while depth and (edge := _COMMENT_EDGE.search(sql, position)):
        depth += 1 if edge.group() == "/*" else -1
        position = edge.end()
    return len(sql) if depth else position
