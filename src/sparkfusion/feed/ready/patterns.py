"""Globs: which files and directories below a fixed directory they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

_MAGIC = re.compile(r"[*?\[]")
_ANY_DEPTH = "**"
State = frozenset[int]
"""Which parts of a pattern may be met next. The number of parts itself: everything here is meant."""


@dataclass(frozen=True)
class Pattern:
    """The parts of a glob below its fixed directory. None at all: everything below.

    Args:
        recursive: whether directories that are meant are meant with the directories in them.
    """

    parts: tuple[str, ...]
    recursive: bool = True

    def start(self) -> State:
        return self._closed({0})

    def is_inside(self, state: State) -> bool:
        """Whether a directory in this state is meant as a whole."""
        return len(self.parts) in state

    def enter(self, state: State, directory: str) -> State:
        """The state in a directory of that name; empty if nothing below it is meant."""
        end, found = len(self.parts), set[int]()
        for at in state:
            if at == end:
                found |= {end} if self.recursive and not is_hidden(directory) else set()
            elif self.parts[at] == _ANY_DEPTH:
                found |= {at} if not is_hidden(directory) else set()
            elif _matches(self.parts[at], directory):
                found.add(at + 1)
        return self._closed(found)

    def names(self, state: State, file: str) -> bool:
        """Whether the glob itself, not a directory that it means, matches a file of that name."""
        last = len(self.parts) - 1
        return last in state and self.parts[last] != _ANY_DEPTH and _matches(self.parts[last], file)

    def _closed(self, state: set[int]) -> State:
        """`**` stands for no directory as well."""
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
    """What writers put beside data: `_SUCCESS`, `_temporary`, `.crc` files. A partition `_x=1` is none of it."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _matches(part: str, name: str) -> bool:
    """Hidden names are matched by a part that begins like them."""
    if is_hidden(name) and part[0] != name[0]:
        return False
    return fnmatchcase(name, part)
