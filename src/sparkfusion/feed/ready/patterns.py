"""Match files and directories below a fixed directory with globs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

_MAGIC = re.compile(r"[*?\[]")
_ANY_DEPTH = "**"
State = frozenset[int]
"""The indexes of the pattern's parts that may match next. The number of parts, as an index, means that everything here
matches."""


@dataclass(frozen=True)
class Pattern:
    """The parts of a glob below its fixed directory; without parts, everything matches. `recursive`: also in
    subdirectories."""

    parts: tuple[str, ...]
    recursive: bool = True

    def start(self) -> State:
        return self._close({0})

    def is_inside(self, state: State) -> bool:
        """Whether everything in a directory with this state matches."""
        return len(self.parts) in state

    def enter(self, state: State, directory: str) -> State:
        """The state in a directory of that name; empty if nothing below it can match."""
        end, found = len(self.parts), set[int]()
        for at in state:
            if at == end:
                found |= {end} if self.recursive and not is_hidden(directory) else set()
            elif self.parts[at] == _ANY_DEPTH:
                found |= {at} if not is_hidden(directory) else set()
            elif _matches(self.parts[at], directory):
                found.add(at + 1)
        return self._close(found)

    def names(self, state: State, file: str) -> bool:
        """Whether the glob itself, and not a directory that it matches, matches a file of that name."""
        last = len(self.parts) - 1
        return last in state and self.parts[last] != _ANY_DEPTH and _matches(self.parts[last], file)

    def _close(self, state: set[int]) -> State:
        """Add the states that follow because `**` also matches no directory."""
        for at, part in enumerate(self.parts):
            if at in state and part == _ANY_DEPTH:
                state.add(at + 1)
        return frozenset(state)


def split_glob(path: str) -> tuple[str, tuple[str, ...]]:
    """The fixed directory of a path, and the parts of the glob below it.

    >>> split_glob("/data/year=*/*.parquet"), split_glob("/data/a")
    (('/data', ('year=*', '*.parquet')), ('/data/a', ()))
    """
    pieces = path.split("/")
    for at, piece in enumerate(pieces):
        if _MAGIC.search(piece):
            return "/".join(pieces[:at]) or "/", tuple(part for part in pieces[at:] if part)
    return path, ()


def is_hidden(name: str) -> bool:
    """Whether a name is that of a file that writers put beside data, such as `_SUCCESS` and `.crc` files. A partition
    `_x=1` is not hidden."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _matches(part: str, name: str) -> bool:
    """Whether a name matches a part of a glob. Hidden names match only a part that begins with the same character."""
    if is_hidden(name) and part[0] != name[0]:
        return False
    return fnmatchcase(name, part)
