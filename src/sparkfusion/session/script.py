"""Cut a script into its statements, at semicolons that are not inside quotes or comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sparkfusion.session.sql_text import mask

_STATEMENT = re.compile(r"[^;]+")


@dataclass(frozen=True)
class ScriptStatement:
    """One statement, and the line of the script it starts on."""

    sql: str
    line: int


def split(script: str) -> list[ScriptStatement]:
    """The statements in order, without semicolons and the comments before them; comments alone are not a statement.

    >>> [statement.sql for statement in split("select ';' -- one; two\\n; select 2")]
    ["select ';' -- one; two", 'select 2']
    """
    found = []
    for part in _STATEMENT.finditer(mask(script)):
        code = part.group().lstrip()
        if code:
            start = part.end() - len(code)
            found.append(ScriptStatement(script[start : part.end()].rstrip(), script.count("\n", 0, start) + 1))
    return found


@contextmanager
def locate_error(current: ScriptStatement, statements: list[ScriptStatement]) -> Iterator[None]:
    """Add to an error from which of several statements it comes."""
    try:
        yield
    except Exception as error:
        if len(statements) > 1:
            error.add_note(f"in the statement that begins at line {current.line}")
        raise
