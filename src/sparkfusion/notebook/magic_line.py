"""Parse the line of a magic: its options, and the SQL after them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkfusion.errors import UserError
from sparkfusion.session.sql_text import mask

USAGE = "%%sparkfusion [--session NAME] [--to NAME] [--dialect datafusion|spark] [--progress on|off]"
_OPTION = re.compile(r"\s*--(?P<name>[a-z]+)(?:=|\s+)(?P<value>[^\s-]\S*)(?:\s+|$)")
_WORD = re.compile(r"\s*--(?P<name>[a-z]\S*)")
_CHOICES = {"session": None, "to": None, "dialect": ("datafusion", "spark"), "progress": ("on", "off")}
_PARAMETER = {
    "datafusion": re.compile(r"\$([A-Za-z_]\w*)"),
    "spark": re.compile(r"(?<![:\w]):([A-Za-z_]\w*)"),
}


@dataclass(frozen=True)
class MagicLine:
    """The options of a magic. `sql` is the rest of the line."""

    session: str | None = None
    to: str | None = None
    dialect: str | None = None
    progress: str | None = None
    sql: str = ""


def parse_magic(line: str) -> MagicLine:
    """Read the options at the beginning of a line; the rest is SQL, which may begin with a comment.

    >>> parse_magic("--to df --session other select 1")
    MagicLine(session='other', to='df', dialect=None, progress=None, sql='select 1')
    >>> parse_magic("-- a comment").sql
    '-- a comment'
    """
    found: dict[str, str] = {}
    position = 0
    while option := _OPTION.match(line, position):
        name, value = option["name"], option["value"]
        if name not in _CHOICES:
            break
        _check(name, value)
        found[name] = value
        position = option.end()
    if (left := _WORD.match(line, position)) is not None:
        what = f"--{left['name']} has no value" if left["name"] in _CHOICES else f"there is no option --{left['name']}"
        raise UserError(f"cannot run the magic: {what}", hint=f"{USAGE}; a comment needs a space after its dashes")
    return MagicLine(**found, sql=line[position:].strip())


def _check(name: str, value: str) -> None:
    choices = _CHOICES[name]
    if choices is None and not value.isidentifier():
        raise UserError(f"cannot run the magic: --{name} takes the name of a variable, not {value!r}", hint=USAGE)
    if choices is not None and value not in choices:
        raise UserError(f"cannot run the magic: --{name} is one of {', '.join(choices)}, not {value!r}", hint=USAGE)


def named_values(sql: str, dialect: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that a statement names: `$name`, or `:name` in Spark's dialect. The session reports names without a
    variable.

    >>> named_values("select $a, '$b', $c", "datafusion", {"a": 1, "b": 2})
    {'a': 1}
    """
    names = _PARAMETER[dialect].findall(mask(sql))
    return {name: variables[name] for name in names if name in variables}
