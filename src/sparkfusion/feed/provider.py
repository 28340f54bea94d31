"""The interface for users who write a feed: the provider of work units, and the contexts of providers and readers."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sparkfusion.feed.rejected import RejectedLine, Rejects
from sparkfusion.feed.units import WorkUnit

_log = logging.getLogger("sparkfusion")

Units = Iterable[WorkUnit] | AsyncIterable[WorkUnit]


class WorkUnitFeedProvider:
    """Finds the work units of a table while queries over it run. It runs only in the coordinator.

    Several queries may read it at the same time, each through its own calls of `feed`. Subclass it, or use any
    object with a `feed` method.

    Attributes:
        partitions: None for a shared feed, whose units go to any task that is free. A number for a partitioned feed:
            `feed` is called for each partition, and all units of a partition go to the same task, in their order.
        tasks: how many tasks should read it; None means one for each slot of the runner.
        rows: about how many rows it has, if known. Without `rows` and `bytes` a feed counts as large.
        bytes: about how large it is, if known.
    """

    partitions: int | None = None
    tasks: int | None = None
    rows: int | None = None
    bytes: int | None = None

    def feed(self, partition: int | None, context: FeedContext) -> Units:
        """Yield the units: a sync or async generator, or any iterable. It may block, wait, and run for ever.

        Called on its own thread, once for each scan in a query and each partition. The generator is paused when enough
        units wait for tasks, and closed when the query needs no more.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Called once for each query that read the feed, when it needs no more units: after the last unit, an error, a
        LIMIT or a cancel. `feed` may still be blocked then; this can make it return."""


@dataclass(frozen=True)
class ScanFilter:
    """A condition of the query on one table. `text` is the condition as DataFusion prints it. `column`, `operator` and
    `value` are set if it compares a column with a constant."""

    text: str
    column: str | None = None
    operator: str | None = None
    value: Any = None


Keeps = Callable[[Sequence[Mapping[str, Any]]], list[bool]]


@dataclass(frozen=True)
class ScanRequest:
    """The columns and rows of a table that a query needs. A provider may use it to find fewer units; ignoring it
    changes no answer.

    Attributes:
        projection: the columns that the query uses.
        filters: conditions that all needed rows meet. Empty if the query scans the table in several ways.
        keeps: returns for combinations of column values whether rows with them may be needed.
        limit: the query needs no more rows than this.
    """

    projection: tuple[str, ...]
    filters: tuple[ScanFilter, ...] = ()
    keeps: Keeps = field(default=lambda rows: [True] * len(rows), compare=False)
    limit: int | None = None


class FeedContext:
    """The query as a provider sees it, and the signal that no more units are needed. Thread-safe.

    Attributes:
        query: the query's id. `table`: the feed's name in it.
        request: projection, filters and limit of the query, also as attributes of the context.
        tasks: how many tasks read the feed.
        headers: what was given to `register_feed(…, headers=…)`.
        metrics: the provider's own counters, shown by `explain(analyze=True)`; see `count`.
    """

    def __init__(
        self, query: str, table: str, request: ScanRequest, *, tasks: int, headers: Mapping[str, str] | None = None
    ) -> None:
        self.query = query
        self.table = table
        self.request = request
        self.tasks = tasks
        self.headers = dict(headers or {})
        self.metrics: dict[str, float] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._on_stop: list[Callable[[], object]] = []

    @property
    def projection(self) -> tuple[str, ...]:
        return self.request.projection

    @property
    def filters(self) -> tuple[ScanFilter, ...]:
        return self.request.filters

    @property
    def limit(self) -> int | None:
        return self.request.limit

    def keeps(self, values: Mapping[str, Any]) -> bool:
        """Whether the query may need rows with these column values. True if the filters do not decide it."""
        return self.request.keeps([values])[0]

    def keeps_each(self, values: Sequence[Mapping[str, Any]]) -> list[bool]:
        """The same for many combinations at once, which takes about as long as for one."""
        return self.request.keeps(values) if values else []

    @property
    def stopped(self) -> bool:
        """Whether the query needs no more units. A provider that waits should check it."""
        return self._stopped.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep, but wake up when the query needs no more; returns `stopped`."""
        return self._stopped.wait(seconds)

    def on_stop(self, call: Callable[[], object]) -> None:
        """Call this function when the query needs no more units; at once if it already needs none."""
        with self._lock:
            if not self._stopped.is_set():
                self._on_stop.append(call)
                return
        call()

    def stop(self) -> None:
        """Called by the coordinator when the query needs no more units. Idempotent; does not wait for callbacks."""
        with self._lock:
            self._stopped.set()
            calls, self._on_stop = self._on_stop, []
        if calls:
            name = f"sparkfusion-{self.query}-stop-{self.table}"
            threading.Thread(target=self._tell, args=(calls,), name=name, daemon=True).start()

    def _tell(self, calls: list[Callable[[], object]]) -> None:
        for call in calls:
            try:
                call()
            except Exception:
                _log.exception("a callback of the feed of table %r failed", self.table)

    def count(self, name: str, amount: float = 1) -> None:
        """Add to one of the provider's own counters."""
        with self._lock:
            self.metrics[name] = self.metrics.get(name, 0) + amount


@dataclass(frozen=True)
class ReaderContext:
    """The table and the query, as a reader in a task sees them.

    Attributes:
        schema: the table's schema. A reader may leave out columns that are not in `projection`.
        headers: what was given to `register_feed(…, headers=…)`.
        rejects: the lines that the task skipped so far.
    """

    table: str
    schema: pa.Schema
    projection: tuple[str, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    rejects: Rejects = field(default_factory=Rejects, compare=False, repr=False)

    def reject(self, file: str, line: int, text: str, why: str) -> None:
        """Report a line that the reader skips. The query counts these lines and shows the first ones."""
        self.rejects.add(RejectedLine(file, line, text, why))


Rows = Any
"""What a reader returns: a record batch, a table, a record batch reader, or a (sync or async) iterable of these."""

Reader = Callable[[WorkUnit, ReaderContext], Rows]
