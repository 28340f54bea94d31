"""What the feed service and its clients agree on. Nothing here needs Flight, so it may travel anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from sparkfusion.feed.book import FeedBook
from sparkfusion.ids import QueryId

TAKE, FAILED, FIRST, ENOUGH = "take", "failed", "first", "enough"
GRANT, WAIT, END, ERROR = b"G", b"W", b"E", b"X"
POLL_SECONDS = 2.0


@dataclass(frozen=True)
class FeedAddress:
    """How a task reaches the service for its query. The key is a secret of the query."""

    host: str
    port: int
    query: QueryId
    key: str = field(repr=False)


@dataclass(frozen=True)
class ServedQuery:
    """What the service may give and take for one query.

    Attributes:
        deliver: (task, place in its ledger, rows): rows for the reader; waits while it is behind.
        first: where a streaming task begins.
    """

    book: FeedBook
    deliver: Callable[[int, int, Iterator[pa.RecordBatch]], None]
    first: Callable[[int], int]
