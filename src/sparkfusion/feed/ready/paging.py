"""How the pages of an HTTP API follow each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sparkfusion.errors import UserError
from sparkfusion.feed.ready.json_rows import at_path

_LINK = re.compile(r'<([^>]*)>((?:\s*;\s*[^\s=;,]+\s*=\s*(?:"[^"]*"|[^\s;,"]+))*)')
_REL = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', re.IGNORECASE)


@dataclass(frozen=True)
class LinkHeader:
    """The URL of the next page is in the header `Link: <…>; rel="next"`."""


@dataclass(frozen=True)
class NextLink:
    """The URL of the next page is in the body, at a path of keys such as "paging.next"."""

    path: str


@dataclass(frozen=True)
class Cursor:
    """The body holds a cursor at a path of keys. It is the value of a request parameter for the next page."""

    path: str
    parameter: str = "cursor"


@dataclass(frozen=True)
class PageNumber:
    """Pages are numbered.

    Attributes:
        pages: how many there are, or a path of keys to that number in the first page. With it, workers fetch the pages.
            Without it, the coordinator fetches them, until one is empty.
    """

    parameter: str = "page"
    first: int = 1
    pages: int | str | None = None

    @property
    def is_told_by_first_page(self) -> bool:
        return isinstance(self.pages, str)

    def number(self, index: int) -> int:
        return self.first + index

    def count(self, document: Any) -> int | None:
        return _total(self.pages, document)


@dataclass(frozen=True)
class Offset:
    """The request has the number of the page's first row.

    Attributes:
        step: the rows of a page. If the API has a parameter for that, add it to `params`.
        total: how many rows there are, or a path of keys to that number, like `PageNumber.pages`.
    """

    step: int
    parameter: str = "offset"
    first: int = 0
    total: int | str | None = None

    def __post_init__(self) -> None:
        if self.step < 1:
            raise UserError(f"the step of Offset must be at least 1, not {self.step!r}")

    @property
    def is_told_by_first_page(self) -> bool:
        return isinstance(self.total, str)

    def number(self, index: int) -> int:
        return self.first + index * self.step

    def count(self, document: Any) -> int | None:
        rows = _total(self.total, document)
        return None if rows is None else max(0, -(-(rows - self.first) // self.step))


Numbered = PageNumber | Offset
Linked = LinkHeader | NextLink | Cursor
Next = Numbered | Linked


def next_page(next: Linked, document: Any, links: Sequence[str]) -> str | None:
    """The next page's URL, or cursor; None after the last page. `links` are the page's headers of that name."""
    if isinstance(next, LinkHeader):
        return next_link(links)
    found = at_path(document, next.path)
    if found is None or found in ("", False):
        return None
    if isinstance(found, bool) or not isinstance(found, str | int):
        raise UserError(f"the value at {next.path!r} is not the link to a next page: it is a {type(found).__name__}")
    return str(found)


def next_link(headers: Sequence[str]) -> str | None:
    """The URL with rel="next".

    >>> next_link(['<https://a.example/?p=1,2>; rel="prev", </x?p=3>; title="a, b"; rel="next last"'])
    '/x?p=3'
    """
    for url, parameters in _LINK.findall(", ".join(headers)):
        for quoted, bare in _REL.findall(parameters):
            if "next" in (quoted or bare).lower().split():
                return str(url)
    return None


def _total(given: int | str | None, document: Any) -> int | None:
    if not isinstance(given, str):
        return given
    found = at_path(document, given)
    if isinstance(found, bool) or not isinstance(found, int):
        raise UserError(f"the first page has no number at {given!r}")
    return found
