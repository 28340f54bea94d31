"""A running query: its rows as they come, and the handle to watch and stop it."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator

import pyarrow as pa

from sparkfusion.errors import QueryCancelledError, SparkfusionError, classify, is_panic
from sparkfusion.feed.dispatch import FeedStats
from sparkfusion.feed.rejected import Rejected, add_up
from sparkfusion.ids import QueryId, StageId
from sparkfusion.log_fields import about
from sparkfusion.observe.events import Measured, QueryFailed, QueryFinished, RowsRejected, Subscriber
from sparkfusion.observe.metrics import metrics_table
from sparkfusion.plan.stage import Head, StageGraph
from sparkfusion.runner.base import RunningJob
from sparkfusion.session.row_window import RowWindow
from sparkfusion.worker import open_work
from sparkfusion.worker.task import TaskReport


class RunningQuery(Iterator[pa.RecordBatch]):
    """The record batches of a running query. Closing it, or leaving its `with` block, stops the query.

    One thread iterates; any thread may call `cancel` and `close`. If the query is stopped before its last row, the
    iteration raises `QueryCancelledError`. Before the first batch, `schema` is that of the DataFrame; a few types may
    change with the first batch, because DataFusion determines them only when it optimizes the plan.
    """

    def __init__(self, query: QueryId, schema: pa.Schema, job: RunningJob, head: Head, emit: Subscriber) -> None:
        self.id = query
        self.schema = schema
        self.rows = 0
        self._job = job
        self._emit = emit
        self._window = RowWindow(head)
        self._started = time.perf_counter()
        self._lock = threading.Lock()
        self._complete = False
        self._over = False
        self._process = os.getpid()
        open_work.add(_closers)

    def __next__(self) -> pa.RecordBatch:
        while not self._over:
            frame = self._next_frame() if not self._window.is_full else None
            if frame is None:
                self._end()
                break
            batch = self._window.cut(frame)
            if batch.num_rows:
                if self.rows == 0:
                    self.schema = decide_schema(self.schema, batch.schema)
                self.rows += batch.num_rows
                return conform(batch, self.schema)
        if self._complete:
            raise StopIteration
        raise QueryCancelledError("the query was stopped before all its rows were read")

    def cancel(self) -> None:
        """Stop the query. The thread that iterates gets a `QueryCancelledError`.

        >>> running = orders.stream()
        >>> running.cancel()
        >>> running.close()
        """
        self._job.cancel()

    def close(self) -> None:
        """Stop the query if it still runs, and remove its files. May be called several times.

        >>> running = orders.stream()
        >>> running.close()
        """
        if self._end_once(complete=False):
            message = "the stream was closed before its end"
            self._emit(QueryFailed(self.id, message, cancelled=True, measured=self._measure()))
        self._job.close()

    def reports(self) -> list[TaskReport]:
        """What the tasks that are done so far reported: times, rows, bytes and metrics of operators.

        >>> with orders.stream() as running:
        ...     rows = running.read_all()
        >>> running.reports()  # the query was not distributed
        []
        """
        return self._job.reports()

    def graph(self) -> StageGraph | None:
        """The stages as they run: joins are decided while the query runs. None if the query is not distributed.

        >>> with orders.stream() as running:
        ...     print(running.graph())
        None
        """
        return self._job.graph()

    def feeds(self) -> list[FeedStats]:
        """The state of each feed of the query: units found, read and waiting.

        >>> with orders.stream() as running:
        ...     running.feeds()
        []
        """
        return self._job.feeds()

    def rejected(self) -> list[Rejected]:
        """The lines that were skipped so far (`on_error="skip"`), for each table: how many, and the first ones.

        >>> with orders.stream() as running:
        ...     running.rejected()
        []
        """
        return rejected_lines(self._job.reports())

    def metrics(self) -> pa.Table:
        """What the tasks that are done so far did: a row for each operator of each stage. Stage 0 is the head. A query
        that is not distributed has no rows.

        >>> with orders.stream() as running:
        ...     running.metrics().num_rows
        0
        """
        return metrics_table(self._job.reports())

    def read_all(self) -> pa.Table:
        """All rows that are left, and the end of the query.

        >>> orders.stream().read_all().num_rows
        3
        """
        with self:
            return pa.Table.from_batches(list(self), schema=self.schema)

    def __enter__(self) -> RunningQuery:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        """Stop a query that nobody refers to any more, on another thread: a garbage collection may interrupt a thread
        that holds the lock of a subscriber, or one that the query waits for."""
        if self._over or self._process != os.getpid():  # a forked child leaves the query to its parent
            return
        if sys.is_finalizing():  # no other thread runs or can be started
            self.close()
        else:
            _Closer(self).start()

    def _next_frame(self) -> pa.RecordBatch | None:
        try:
            return self._job.next_frame()
        except BaseException as error:
            cancelled = isinstance(error, QueryCancelledError | KeyboardInterrupt)
            if self._end_once(complete=False):
                self._emit(QueryFailed(self.id, str(error), cancelled=cancelled, measured=self._measure()))
            self._job.close()
            if isinstance(error, SparkfusionError) or not (isinstance(error, Exception) or is_panic(error)):
                raise
            raise classify(error) from error

    def _end(self) -> None:
        if self._end_once(complete=True):
            self._job.close()
            own = [report for report in self._job.reports() if report.key.query == self.id]  # a COPY shows its query's
            tell_rejected(self.id, rejected_lines(own), self._emit)
            seconds = time.perf_counter() - self._started
            self._emit(QueryFinished(self.id, self.rows, seconds, self._measure()))

    def _measure(self) -> Measured | None:
        graph = self._job.graph()
        return Measured(graph, tuple(self._job.reports()), tuple(self._job.feeds())) if graph is not None else None

    def _end_once(self, *, complete: bool) -> bool:
        """Note how the query ended. True for the first caller: a close may race the last row."""
        with self._lock:
            if self._over:
                return False
            self._complete = complete
            self._over = True
            return True


class _Closer(threading.Thread):
    """Closes a query that nobody refers to any more."""

    def __init__(self, running: RunningQuery) -> None:
        super().__init__(name=f"sparkfusion-{running.id}-closer", daemon=True)
        self._running = running

    def run(self) -> None:
        self._running.close()


class _Closers:
    """The closers of this process, as work under way: when the process ends, it waits for them."""

    def stop(self) -> None:
        """Nothing: they stop their queries."""

    def is_running(self) -> bool:
        return any(isinstance(thread, _Closer) for thread in threading.enumerate())


_closers = _Closers()


def decide_schema(promised: pa.Schema, seen: pa.Schema) -> pa.Schema:
    """The promised schema if its types are those of the rows, otherwise the schema of the rows."""
    return promised if promised.types == seen.types else seen


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch under the schema that the DataFrame promised: same types, its own nullability and metadata."""
    if batch.schema.equals(schema, check_metadata=True) or len(schema) == 0:
        return batch
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


_log = logging.getLogger("sparkfusion")


def rejected_lines(reports: Iterable[TaskReport]) -> list[Rejected]:
    """The lines that these tasks skipped, by table. Lines that several scans of a table skipped count once."""
    stages: dict[StageId, list[Rejected]] = {}
    for report in reports:
        if report.rejected is not None:
            stages.setdefault(report.key.stage, []).append(report.rejected)
    tables: dict[str, Rejected] = {}
    for found in (each for parts in stages.values() for each in add_up(parts)):
        known = tables.get(found.table)
        if known is None or known.count < found.count:
            tables[found.table] = found
    return [tables[table] for table in sorted(tables)]


def tell_rejected(query: QueryId, rejected: Iterable[Rejected], emit: Subscriber) -> None:
    """Log a warning and emit an event for each table."""
    for each in rejected:
        lines = "line" if each.count == 1 else "lines"
        shown = "; ".join(map(str, each.first))
        shown += "; …" if each.count > len(each.first) else ""
        words = "query %s skipped %s %s of table %r: %s"
        _log.warning(words, query, f"{each.count:,}", lines, each.table, shown, extra=about(query))
        emit(RowsRejected(query, each.table, each.count, each.first))
