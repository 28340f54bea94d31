"""SQL text without what only looks like SQL: comments, and whatever is inside quotes."""

from __future__ import annotations

import re

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


def mask(sql: str) -> str:
    """The text, as long as it is, with blanks for comments and an `x` for each character inside quotes.

    So keywords, parentheses and semicolons are found where they are SQL, and their positions hold in the text itself.

    >>> mask("select ';)' -- done;")
    "select 'xx'         "
    """
    parts, position = [], 0
    while found := _OPAQUE.search(sql, position):
        parts.append(sql[position : found.start()])
        end = found.end()
        if found["comment"]:
            end = _end_of_comment(sql, end)
        elif found["dollar"]:
            closing = sql.find(found["dollar"], end)
            end = len(sql) if closing < 0 else closing + len(found["dollar"])
        text = sql[found.start() : end]
        is_comment = found["comment"] or found["line_comment"]
        parts.append(" " * len(text) if is_comment else text[0] + "x" * (len(text) - 2) + text[1:][-1:])
        position = end
    return "".join(parts) + sql[position:]


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
