"""HttpPages: the pages of an HTTP API that answers with JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import pyarrow as pa

from sparkfusion.errors import QueryCancelledError, UserError
from sparkfusion.feed.provider import FeedContext, ReaderContext, WorkUnitFeedProvider
from sparkfusion.feed.ready.http_client import HttpClient, Page, origin, sleep
from sparkfusion.feed.ready.json_rows import batch_of, parse, rows_of
from sparkfusion.feed.ready.paging import Cursor, Linked, LinkHeader, Next, Numbered, next_page
from sparkfusion.feed.units import WorkUnit
from sparkfusion.urls import show_url


@dataclass(frozen=True)
class PageReader:
    """Makes rows of a page, on a worker. The unit holds the body of the page, or its number; then the worker fetches
    the page.

    URL and headers may hold secret keys, so they are here and not in the units, which errors show.
    """

    url: str = field(repr=False)
    parameter: str
    rows: str | None
    client: HttpClient

    def __call__(self, unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
        shown, body = show_url(self.url), unit.payload
        if not isinstance(body, bytes):
            url = with_parameter(self.url, self.parameter, str(body))
            body = self.client.fetch(url, context.headers, sleep).body
        found = rows_of(parse(body, shown), self.rows, shown)
        wanted = [name for name in context.schema.names if name in context.projection]
        schema = pa.schema([context.schema.field(name) for name in wanted or context.schema.names[:1]])
        return batch_of(found, schema)


class HttpPages(WorkUnitFeedProvider):
    """Rows of an HTTP API that gives them in pages.

    If pages are numbered and their count is known, each worker fetches its own pages. If only a page itself shows
    whether and which page follows, the coordinator fetches the pages one after the other, and workers get the bodies.

    Args:
        url: the URL of the first page.
        schema: the schema of the rows. Keys that a row lacks are NULL; keys that are not in the schema are left out.
        next: how pages follow: `LinkHeader`, `NextLink`, `Cursor`, `PageNumber` or `Offset`.
        rows: path of keys to the list of rows in a page, such as "data.items"; None if the page is that list.
        params: parameters of every request. Their values are not shown in errors.
        headers: headers of every request, besides those of `register_feed`. They are not sent to other hosts.
        timeout: seconds without an answer. `retries`: attempts after the first. The pauses between them grow, or are
            those that the server asks for, up to `longest_wait` seconds.
    """

    format: str | None = None

    def __init__(
        self,
        url: str,
        *,
        schema: pa.Schema,
        next: Next | None = None,
        rows: str | None = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        retries: int = 5,
        longest_wait: float = 300.0,
    ) -> None:
        self.schema = schema
        self._next: Next = next if next is not None else LinkHeader()
        self._url = url
        for name, value in (params or {}).items():
            self._url = with_parameter(self._url, name, str(value))
        if urlsplit(self._url).scheme not in ("http", "https") or not urlsplit(self._url).hostname:
            raise UserError(f"{show_url(self._url)!r} is not an http URL")
        if urlsplit(self._url).username is not None:
            raise UserError(f"{show_url(self._url)!r} contains a user name: put it into headers={{'Authorization': …}}")
        if retries < 0 or timeout <= 0:
            raise UserError(f"retries={retries!r} must be at least 0, and timeout={timeout!r} must be more than 0")
        self._rows = rows
        self._client = HttpClient(timeout, retries, longest_wait, dict(headers or {}))
        self.reader = PageReader(self._url, getattr(self._next, "parameter", ""), rows, self._client)

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[WorkUnit]:
        try:
            if isinstance(self._next, Numbered):
                yield from self._find_numbered(self._next, context)
            else:
                yield from self._find_linked(self._next, context)
        except QueryCancelledError:
            return

    def _find_numbered(self, next: Numbered, context: FeedContext) -> Iterator[WorkUnit]:
        begin, shown = 0, show_url(self._url)
        if next.is_told_by_first_page:
            page = self._fetch(self._page_url(next, 0), context)
            begin, pages = 1, next.count(parse(page.body, shown))
            yield WorkUnit(page.body)
        else:
            pages = next.count(None)
        if pages is not None:
            yield from (WorkUnit(next.number(index)) for index in range(begin, pages))
            return
        for index in count():
            page = self._fetch(self._page_url(next, index), context)
            if context.stopped or not rows_of(parse(page.body, shown), self._rows, shown):
                return
            yield WorkUnit(page.body)

    def _find_linked(self, next: Linked, context: FeedContext) -> Iterator[WorkUnit]:
        url, seen = self._url, set[str]()
        while not context.stopped:
            if url in seen:
                raise UserError(f"the pages of {show_url(self._url)} lead in a circle back to {show_url(url)}")
            seen.add(url)
            page = self._fetch(url, context)
            yield WorkUnit(page.body)
            found = next_page(next, parse(page.body, show_url(url)), page.links)
            if found is None:
                return
            url = self._next_url(next, url, found)

    def _next_url(self, next: Linked, url: str, found: str) -> str:
        if isinstance(next, Cursor):
            return with_parameter(self._url, next.parameter, found)
        made = urljoin(url, found)
        if origin(made) != origin(self._url):
            raise UserError(f"the pages of {show_url(self._url)} lead to another host: {origin(made)[1]}")
        return made

    def _page_url(self, next: Numbered, index: int) -> str:
        return with_parameter(self._url, next.parameter, str(next.number(index)))

    def _fetch(self, url: str, context: FeedContext) -> Page:
        def wait(seconds: float) -> bool:
            context.count("retries")
            return context.wait(seconds)

        context.count("pages")
        return self._client.fetch(url, context.headers, wait)


def with_parameter(url: str, name: str, value: str) -> str:
    """The URL with that parameter, which replaces one of the same name.

    >>> with_parameter("https://a.example/x?page=1&n=2", "page", "a b")
    'https://a.example/x?n=2&page=a+b'
    """
    parts = urlsplit(url)
    pairs = [(key, old) for key, old in parse_qsl(parts.query, keep_blank_values=True) if key != name]
    return parts._replace(query=urlencode([*pairs, (name, value)])).geturl()
