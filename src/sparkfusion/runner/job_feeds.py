"""A running query's feeds. They report to the query's coordinator and to subscribers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sparkfusion.errors import SparkfusionError
from sparkfusion.feed.book import FeedBook
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.feed.feed import FeedDeclaration
from sparkfusion.ids import FeedId
from sparkfusion.observe.events import FeedProgress
from sparkfusion.plan.feed_scans import feeds_read
from sparkfusion.plan.wire import decode
from sparkfusion.runner.base import QueryJob
from sparkfusion.worker.unit_files import FeedInput

_TOLD_EVERY_SECONDS = 0.2


class JobFeeds:
    """The feeds of one running query."""

    def __init__(self, job: QueryJob, on_error: Callable[[SparkfusionError], None]) -> None:
        self._job = job
        self._lock = threading.Lock()
        self._told: dict[FeedId, float] = {}
        ahead = job.settings.integer("feed_units_ahead")
        together = [feeds_read(decode(stage.plan)) for stage in job.graph.stages] if job.feeds else []
        self.book = FeedBook(
            job.query, job.feeds, ahead=ahead, on_error=on_error, on_change=self._on_change, together=together
        )

    def stats(self) -> list[FeedStats]:
        return list(self.book.stats().values())

    def close(self) -> None:
        self.book.close()
        for feed in self.book.declared:
            self._tell(feed)

    def _on_change(self, feed: FeedId) -> None:
        now = time.monotonic()
        with self._lock:
            if now - self._told.get(feed, 0.0) < _TOLD_EVERY_SECONDS:
                return
            self._told[feed] = now
        self._tell(feed)

    def _tell(self, feed: FeedId) -> None:
        at = self.book[feed].stats()
        self._job.emit(
            FeedProgress(self._job.query, at.table, feed, at.found, at.handed, at.done, at.replayed, at.discovering)
        )


def feed_input(declared: FeedDeclaration) -> FeedInput:
    return FeedInput(
        feed=declared.feed,
        table=declared.table,
        files=declared.files,
        schema=declared.schema.serialize().to_pybytes(),
        columns=declared.request.projection,
        partition_columns=declared.partition_columns,
        headers=declared.headers,
    )
