"""Walk through directories lazily: files come while the listing goes on, and pruned directories are not listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sparkfusion.errors import UserError, classify
from sparkfusion.feed.ready.file_access import Entry, FileAccess
from sparkfusion.feed.ready.hive import Values, partition_of
from sparkfusion.feed.ready.patterns import Pattern, State, is_hidden

DirectorySortOrder = Literal["ascending", "descending"]


@dataclass(frozen=True)
class ListedFile:
    """A file in a listing.

    Attributes:
        path: the path as in units. `modified`: seconds since 1970, 0 if it is not known.
        partition_values: the values of its Hive directories, as they are spelled there.
        asked: whether a path or glob names the file itself, and not a directory that it is in.
    """

    path: str
    size: int
    modified: float = 0.0
    partition_values: Values = field(default_factory=dict)
    asked: bool = True


FileSortOrder = Literal["name", "newest", "oldest", "largest"] | Callable[[ListedFile], Any]

_ORDERS: dict[str, Callable[[ListedFile], Any]] = {
    "name": lambda file: file.path,
    "newest": lambda file: (-file.modified, file.path),
    "oldest": lambda file: (file.modified, file.path),
    "largest": lambda file: (-file.size, file.path),
}


@dataclass(frozen=True)
class Walk:
    """A walk through the directories of one file access.

    Args:
        keeps: whether each of some sibling directories may be needed, by its values; called only for Hive directories.
        stopped: checked in every directory.
        on_directory: called for each directory that is listed.
        order: the order of sibling directories, and of the files in a directory; None takes them as they are listed.
    """

    access: FileAccess
    pattern: Pattern
    keeps: Callable[[Sequence[Values]], list[bool]]
    stopped: Callable[[], bool] = lambda: False
    on_directory: Callable[[str], None] = lambda path: None
    order: DirectorySortOrder | None = None

    def files(self, base: str) -> Iterator[ListedFile]:
        """Every file that the pattern matches, depth first. Raises a `UserError` if `base` does not exist."""
        if not self.pattern.parts:
            found = self.access.entry(base)
            if found is not None and not found.is_directory:
                yield ListedFile(base, found.size, found.modified)
                return
            if found is None:
                raise _missing_error(base)
        yield from self._visit(base, self.pattern.start(), {}, is_base=True)

    def _visit(self, directory: str, state: State, values: Values, *, is_base: bool = False) -> Iterator[ListedFile]:
        self.on_directory(directory)
        below: list[tuple[Entry, State, Values]] = []
        try:
            for entry in self._list(directory):
                if self.stopped():
                    return
                if entry.is_directory:
                    inner = self.pattern.enter(state, entry.name)
                    if inner:
                        below.append((entry, inner, _with_own(values, entry.name)))
                elif entry.size and (asked := self._is_meant(state, entry.name)) is not None:
                    yield ListedFile(entry.path, entry.size, entry.modified, values, asked)
        except (FileNotFoundError, NotADirectoryError):
            if is_base:
                raise _missing_error(directory) from None
            return  # removed since the listing of the directory above
        except OSError as error:
            raise classify(error) from error
        for entry, inner, own in self._prune(below, values):
            if self.stopped():
                return
            yield from self._visit(entry.path, inner, own)

    def _list(self, directory: str) -> Iterator[Entry]:
        found = self.access.list(directory)
        if self.order is None:
            return found
        return iter(sorted(found, key=lambda entry: entry.name, reverse=self.order == "descending"))

    def _is_meant(self, state: State, name: str) -> bool | None:
        """True if the pattern matches the file itself, False if it matches a directory that the file is in, None if
        neither."""
        if self.pattern.names(state, name):
            return True
        return False if self.pattern.is_inside(state) and not is_hidden(name) else None

    def _prune(self, below: list[tuple[Entry, State, Values]], values: Values) -> list[tuple[Entry, State, Values]]:
        hive = [each for each in below if each[2] is not values]
        kept = dict(zip((each[0].path for each in hive), self.keeps([each[2] for each in hive]), strict=True))
        found = [each for each in below if kept.get(each[0].path, True)]
        if self.order is not None:
            found.sort(key=lambda each: _rank(each[0].name), reverse=self.order == "descending")
        return found


def _with_own(values: Values, directory: str) -> Values:
    own = partition_of(directory)
    return values if own is None else {**values, own[0]: own[1]}


def _rank(directory: str) -> tuple[str, int, str]:
    """A key that sorts numbers by their value, not by their digits."""
    name, value = partition_of(directory) or ("", directory)
    text = value or ""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    return name, sign * int(digits) if digits.isdecimal() else 0, text


def _missing_error(path: str) -> UserError:
    return UserError(f"there is no file or directory {path!r}")


def sort_key(order: FileSortOrder | None) -> Callable[[ListedFile], Any] | None:
    """The key to sort files by; None to take them as they are listed."""
    if isinstance(order, str) and order not in _ORDERS:
        raise UserError(f"unknown order {order!r}", hint=f"one of {', '.join(_ORDERS)}, or a function")
    return _ORDERS[order] if isinstance(order, str) else order
