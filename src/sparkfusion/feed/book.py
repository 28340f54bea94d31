"""All feeds of one query. They start and stop together, and each provider is closed once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from sparkfusion.errors import QueryCancelledError, SparkfusionError
from sparkfusion.feed.dispatch import Dispatcher, FeedStats, NoGrant
from sparkfusion.feed.feed import FeedDeclaration
from sparkfusion.feed.provider import FeedContext
from sparkfusion.feed.unit_queues import start_thread
from sparkfusion.ids import FeedId, QueryId

_FIRST_PATIENCE_SECONDS = 0.1
_PATIENCE_SECONDS = 1.0
_TURN_SECONDS = 0.2
_log = logging.getLogger("sparkfusion")


class FeedBook:
    """The coordinator's side of a query's feeds. Any thread may call any method, `stop` and `close` repeatedly."""

    def __init__(
        self,
        query: QueryId,
        declared: Iterable[FeedDeclaration],
        *,
        ahead: int,
        on_error: Callable[[SparkfusionError], None],
        on_change: Callable[[FeedId], None] = lambda feed: None,
        together: Iterable[Collection[FeedId]] = (),
    ) -> None:
        """`together`: groups of feeds that the same stage reads."""
        self._together = [frozenset(feeds) for feeds in together]
        self.declared: Mapping[FeedId, FeedDeclaration] = {each.feed: each for each in declared}
        self._lock = threading.Lock()
        self._closed = False
        self._dispatchers = {
            feed: _dispatcher(query, each, ahead, on_error, lambda feed=feed: on_change(feed))  # type: ignore[misc]
            for feed, each in self.declared.items()
        }

    def __getitem__(self, feed: FeedId) -> Dispatcher:
        return self._dispatchers[feed]

    def start(self) -> None:
        for dispatcher in self._dispatchers.values():
            dispatcher.start()

    def stats(self) -> dict[FeedId, FeedStats]:
        return {feed: dispatcher.stats() for feed, dispatcher in self._dispatchers.items()}

    def enough(self, feed: FeedId, task: int) -> None:
        """Called when a task has all rows that its stage needs, so that no feed of that stage has to continue."""
        for each in next((group for group in self._together if feed in group), (feed,)):
            self._dispatchers[each].stop_others(task if each == feed else None)

    def stop(self) -> None:
        """Stop asking the providers for units; returns at once."""
        for dispatcher in self._dispatchers.values():
            dispatcher.stop()

    def close(self) -> None:
        """Stop, wait a moment for the providers' threads, and close every provider once."""
        self.stop()
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for dispatcher in self._dispatchers.values():
            dispatcher.join(_FIRST_PATIENCE_SECONDS)
        providers = {id(each.source.inner()): each for each in self.declared.values()}
        closing = [start_thread(partial(_close, each), f"{each.table}-close") for each in providers.values()]
        for thread in closing:
            thread.join(_PATIENCE_SECONDS)
        for dispatcher in self._dispatchers.values():  # `close` may have woken a thread that blocked
            dispatcher.join(_PATIENCE_SECONDS)


def _close(declared: FeedDeclaration) -> None:
    """Close a provider on a thread of its own: it may block, and must not delay the end of the query."""
    close = getattr(declared.source.inner(), "close", None)
    try:
        if close is not None:
            close()
    except Exception:
        _log.exception("closing the feed of table %r failed", declared.table)


class TaskUnits:
    """The units of one task, for the code that serves the task.

    Args:
        host: the machine that the task runs on; units that are near it come first.
        is_gone: whether the task no longer waits for units; asked from time to time while there are none.
    """

    def __init__(self, book: FeedBook, feed: FeedId, task: int, host: str, is_gone: Callable[[], bool]) -> None:
        self._book = book
        self._feed = feed
        self._dispatcher = book[feed]
        self._task = task
        self._host = host
        self._is_gone = is_gone

    def take(self, offset: int) -> bytes | None:
        while not self._is_gone():
            answer = self._dispatcher.take(self._task, offset, host=self._host, patience=_TURN_SECONDS)
            if answer is NoGrant.END:
                return None
            if not isinstance(answer, NoGrant):
                return answer.data
        raise QueryCancelledError("the task was cancelled")

    def report_failure(self, offset: int) -> None:
        self._dispatcher.report_failure(self._task, offset)

    def enough(self) -> None:
        self._book.enough(self._feed, self._task)


def _dispatcher(
    query: QueryId,
    declared: FeedDeclaration,
    ahead: int,
    on_error: Callable[[SparkfusionError], None],
    on_change: Callable[[], None],
) -> Dispatcher:
    context = FeedContext(query, declared.table, declared.request, tasks=declared.tasks, headers=declared.headers)
    return Dispatcher(
        declared.source,
        context,
        partitions=declared.partitions,
        ahead=ahead,
        files=declared.files,
        on_error=on_error,
        on_change=on_change,
    )
