"""What a user writes to feed a table: a provider of work units, and what it is told of the query."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from sparkfusion.feed.rejected import RejectedLine, Rejects
from sparkfusion.feed.units import WorkUnit

_log = logging.getLogger("sparkfusion")

Units = Iterable[WorkUnit] | AsyncIterable[WorkUnit]


class WorkUnitFeedProvider:
    """Finds the work units of a table while queries over it run. It lives on the coordinator and never travels.

    Several queries may read it at the same time, each through its own calls of `feed`. Subclass it, or bring any
    object with a `feed` method.

    Attributes:
        partitions: None for a shared feed, whose units go to whichever task is free. A number for a partitioned one:
            `feed` is called for each partition, and all units of a partition go to the same task, in their order.
        tasks: how many tasks should read it; None leaves that to the runner's slots.
        rows, bytes: about how much there is, if that is known. Without it a feed counts as large.
    """

    partitions: int | None = None
    tasks: int | None = None
    rows: int | None = None
    bytes: int | None = None

    def feed(self, partition: int | None, context: FeedContext) -> Units:
        """The units, as a sync or async generator (or any iterable). It may block, wait, and never end.

        Called on a thread of its own, once for each scan in a query and each partition, when tasks can take units. It
        is not asked for more than tasks take, and is closed when the query has what it needs.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Called once for each query that read the feed, when that query asks for no more: at the end of all units, on
        an error, LIMIT or cancel. It may be called while `feed` is still blocked, to make it return."""


class Filter(Protocol):
    """A condition of the query on one table. `text` is DataFusion's. Simple ones are also given in parts."""

    @property
    def text(self) -> str: ...

    @property
    def column(self) -> str | None: ...

    @property
    def operator(self) -> str | None: ...

    @property
    def value(self) -> Any: ...


Keeps = Callable[[Sequence[Mapping[str, Any]]], list[bool]]


@dataclass(frozen=True)
class ScanRequest:
    """What a query wants of a table. Following it saves work; not following it changes no answer.

    Attributes:
        projection: the columns that the query looks at.
        filters: conditions that every useful row meets. Empty where the query reads the table in several ways.
        keeps: which of some combinations of column values may still belong to useful rows.
        limit: more rows than this are not needed.
    """

    projection: tuple[str, ...]
    filters: tuple[Filter, ...] = ()
    keeps: Keeps = field(default=lambda rows: [True] * len(rows), compare=False)
    limit: int | None = None


class FeedContext:
    """What a provider is told, and how it hears that nobody needs more. Safe to use from any thread.

    Attributes:
        query: the query's id. `table`: the feed's name in it.
        request: projection, filters and limit of the query, also as attributes of the context.
        tasks: how many tasks read the feed.
        headers: what was given to `register_feed(…, headers=…)`.
        metrics: counts of the provider's own, shown by `explain(analyze=True)`; see `count`.
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
    def filters(self) -> tuple[Filter, ...]:
        return self.request.filters

    @property
    def limit(self) -> int | None:
        return self.request.limit

    def keeps(self, values: Mapping[str, Any]) -> bool:
        """Whether rows with these column values may be of use; what the filters do not decide is kept."""
        return self.request.keeps([values])[0]

    def keeps_each(self, values: Sequence[Mapping[str, Any]]) -> list[bool]:
        """The same for many at once, which costs about as much as for one."""
        return self.request.keeps(values) if values else []

    @property
    def stopped(self) -> bool:
        """Whether the query needs no more units; a provider that waits or calls out should look at it."""
        return self._stopped.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleep, but wake up when the query needs no more; returns `stopped`."""
        return self._stopped.wait(seconds)

    def on_stop(self, call: Callable[[], object]) -> None:
        """Call this when the query needs no more, at once if that is so already."""
        with self._lock:
            if not self._stopped.is_set():
                self._on_stop.append(call)
                return
        call()

    def stop(self) -> None:
        """The query needs no more. Called by its coordinator, any number of times; does not wait for callbacks."""
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
        """Add to a metric of the provider's own."""
        with self._lock:
            self.metrics[name] = self.metrics.get(name, 0) + amount


@dataclass(frozen=True)
class ReaderContext:
    """What a reader is told, on a worker.

    Attributes:
        schema: the table's. Columns outside of `projection` may be left out.
        headers: what was given to `register_feed(…, headers=…)`.
        rejects: what the task left out so far.
    """

    table: str
    schema: pa.Schema
    projection: tuple[str, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    rejects: Rejects = field(default_factory=Rejects, compare=False, repr=False)

    def reject(self, file: str, line: int, text: str, why: str) -> None:
        """Tell of a line that the reader leaves out. The query counts it, and shows the first ones."""
        self.rejects.add(RejectedLine(file, line, text, why))


Rows = Any
"""What a reader gives: a record batch, a table, a record batch reader, or a (sync or async) iterable of these."""

Reader = Callable[[WorkUnit, ReaderContext], Rows]
