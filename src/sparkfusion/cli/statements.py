"""Cut a script into its statements, at semicolons that are not inside quotes or comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

# What may hold a semicolon. An unterminated one runs to the end: DataFusion's own message is better than ours.
_TOKEN = re.compile(
    r"""
      (?P<line_comment> --[^\n]* )
    | (?P<comment> /\* )
    | (?P<quoted> '(?:[^']|'')*(?:'|\Z) | "(?:[^"]|"")*(?:"|\Z) | `[^`]*(?:`|\Z) )
    | (?P<dollar> \$(?P<tag>[A-Za-z_]\w*)?\$ )
    | (?P<end> ; )
    """,
    re.VERBOSE,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class Statement:
    """One statement, and the line of the script it starts on."""

    sql: str
    line: int


def split(script: str) -> list[Statement]:
    """The statements in order, without semicolons and the comments before them; comments alone are no statement.

    >>> [statement.sql for statement in split("select ';' -- one; two\\n; select 2")]
    ["select ';' -- one; two", 'select 2']
    """
    found: list[Statement] = []
    start: int | None = None  # of the statement, once something other than space and comments was seen
    position = 0
    while token := _TOKEN.search(script, position):
        if start is None:
            start = _first_text(script, position, token.start())
        position = token.end()
        if token["end"]:
            if start is not None:
                found.append(_statement(script, start, token.start()))
            start = None
        elif token["comment"]:
            position = _end_of_comment(script, position)
        elif token["quoted"] or token["dollar"]:
            start = token.start() if start is None else start
            if token["dollar"]:
                position = _end_of_dollar_quote(script, position, token["dollar"])
    if start is None:
        start = _first_text(script, position, len(script))
    if start is not None:
        found.append(_statement(script, start, len(script)))
    return found


@contextmanager
def located(current: Statement, statements: list[Statement]) -> Iterator[None]:
    """Let an error tell which of several statements it comes from."""
    try:
        yield
    except Exception as error:
        if len(statements) > 1:
            error.add_note(f"in the statement that begins at line {current.line}")
        raise


def _statement(script: str, start: int, end: int) -> Statement:
    return Statement(script[start:end].rstrip(), script.count("\n", 0, start) + 1)


def _first_text(script: str, start: int, end: int) -> int | None:
    text = script[start:end].lstrip()
    return end - len(text) if text else None


def _end_of_dollar_quote(script: str, position: int, mark: str) -> int:
    closing = script.find(mark, position)
    return len(script) if closing < 0 else closing + len(mark)


def _end_of_comment(script: str, position: int) -> int:
    """Where a block comment ends that was opened before `position`; they nest."""
    depth = 1
    while depth and (edge := _COMMENT_EDGE.search(script, position)):
        depth += 1 if edge.group() == "/*" else -1
        position = edge.end()
    return len(script) if depth else position
