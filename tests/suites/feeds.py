"""Feeds for tests: providers that do what a script says, readers that work wherever tasks run, tables as feeds.

What happens on a worker is seen in rows (each carries its unit) or through files, never through globals: the worker may
be another process. What a provider does may be counted on it: it stays in this process.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from types import TracebackType
from typing import Any

import pyarrow as pa
import pytest
from datafusion import SessionContext

from sparkfusion import FeedContext, ReaderContext, Session, WorkUnit, WorkUnitFeedProvider
from sparkfusion.verify import CompareOptions, compare_tables
from tests.behaviour.probes import PATIENCE
from tests.runners import FLIGHT, LOCAL, NAMES

ROWS_PER_UNIT = 3

NOT_LOCAL = tuple(name for name in NAMES if name != LOCAL)
ALL_RUN_LOCALLY = "these are some of those that all run on the local runner"
MANY = "on Spark each takes a third of a second; there some of these are enough"
"""For a few of many cases that prove most on one runner, tried on the others too."""
ONE_STORE = pytest.mark.runners(
    LOCAL, FLIGHT, "spark-local", reason="how units get to tasks does not depend on where Spark's frames are"
)

SCHEMA = pa.schema([("unit", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("s", pa.string())])
"""A unit's number, a key of five values, a number of the row's own, a text with NULLs in it."""

Made = WorkUnit | Any
Script = Callable[[int | None, FeedContext], Iterable[Made]]


class Scripted(WorkUnitFeedProvider):
    """Gives the units of a script, which is an iterable, or a function of the partition and the context.

    Attributes:
        calls: the partition of each call of `feed`, once it is asked for its first unit.
        asked: how many units were taken off the script.
        ended: how many of its generators were run to an end or closed.
        closed: how often `close` was called.
    """

    def __init__(self, script: Iterable[Made] | Script, partitions: int | None = None) -> None:
        self.script = script
        self.partitions = partitions
        self.calls: list[int | None] = []
        self.contexts: list[FeedContext] = []
        self.asked = self.ended = self.closed = 0
        self._lock = threading.Lock()

    def feed(self, partition: int | None, context: FeedContext) -> Iterator[WorkUnit]:
        with self._lock:
            self.calls.append(partition)
            self.contexts.append(context)
        try:
            for made in self.script(partition, context) if callable(self.script) else self.script:
                with self._lock:
                    self.asked += 1
                yield unit_of(made)
        finally:
            with self._lock:
                self.ended += 1

    def close(self) -> None:
        with self._lock:
            self.closed += 1


AsyncScript = Callable[[int | None, FeedContext], AsyncIterator[Made]]


class AsyncScripted(Scripted):
    """The same with an asynchronous generator."""

    def __init__(self, script: AsyncScript, partitions: int | None = None) -> None:
        super().__init__((), partitions)
        self.async_script = script

    async def feed(self, partition: int | None, context: FeedContext) -> AsyncIterator[WorkUnit]:  # type: ignore[override]
        self.calls.append(partition)
        self.contexts.append(context)
        try:
            async for made in self.async_script(partition, context):
                self.asked += 1
                yield unit_of(made)
        finally:
            self.ended += 1


def unit_of(made: Made) -> WorkUnit:
    return made if isinstance(made, WorkUnit) else WorkUnit(made)


def counting_up(partition: int | None, context: FeedContext) -> Iterator[int]:
    """Never ends. Stops a test that would let it run on."""
    del partition, context
    yield from range(1_000_000)
    raise AssertionError("nobody stopped the endless feed")


class Door:
    """A provider waits at it until the test opens it. Leaving the `with` opens it, whatever happened."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self._arrived = threading.Event()

    def __enter__(self) -> Door:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open()

    def open(self) -> None:
        self._opened.set()

    def wait(self) -> None:
        """Wait, and let nothing but `open` end it: no look at the context."""
        self._arrived.set()
        assert self._opened.wait(3 * PATIENCE), "the door was never opened"

    async def wait_async(self) -> None:
        """The same for an asynchronous provider; its waiting can be interrupted."""
        self._arrived.set()
        await asyncio.Event().wait()

    def wait_for_arrival(self) -> None:
        assert self._arrived.wait(PATIENCE), "nobody came to the door"


# ---- readers: called on workers


def batch_of(unit: int, rows: int = ROWS_PER_UNIT) -> pa.RecordBatch:
    """The rows of a unit."""
    values = range(unit * 1000, unit * 1000 + rows)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([unit] * rows, pa.int64()),
            pa.array([value % 5 for value in values], pa.int64()),
            pa.array(values, pa.int64()),
            pa.array([None if value % 4 == 0 else f"s{value % 7}" for value in values], pa.string()),
        ],
        schema=SCHEMA,
    )


def read_number(unit: WorkUnit, context: ReaderContext) -> pa.RecordBatch:
    """A unit's payload is its number."""
    del context
    return batch_of(unit.payload)


def read_bytes(unit: WorkUnit, context: ReaderContext) -> pa.Table:
    """A unit's payload is an Arrow stream."""
    del context
    return pa.ipc.open_stream(unit.payload).read_all()


# ---- tables as feeds


def table_of(units: Iterable[int]) -> pa.Table:
    """What a feed of these units holds."""
    return pa.Table.from_batches([batch_of(unit) for unit in units], schema=SCHEMA)


def feed_numbers(
    session: Session, name: str, provider: Scripted | Iterable[int], *, tasks: int | None = None, **options: Any
) -> Scripted:
    """A feed whose units are numbers."""
    made = provider if isinstance(provider, Scripted) else Scripted(provider)
    session.register_feed(name, made, **{"schema": SCHEMA, "reader": read_number, "tasks": tasks, **options})
    return made


def feed_table(session: Session, name: str, table: pa.Table, *, units: int = 5, **options: Any) -> Scripted:
    """A table as a feed: each unit carries some of its rows."""
    provider = Scripted([_stream_of(piece) for piece in pieces(table, units)])
    session.register_feed(name, provider, schema=table.schema, reader=read_bytes, **options)
    return provider


def pieces(table: pa.Table, count: int) -> list[pa.Table]:
    """The table in so many parts, about equal; some may be empty."""
    cuts = [table.num_rows * number // count for number in range(count + 1)]
    return [table.slice(start, end - start) for start, end in itertools.pairwise(cuts)]


def _stream_of(piece: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, piece.schema) as writer:
        writer.write_table(piece.combine_chunks())
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


# ---- answers


def plain_answer(query: str, **tables: pa.Table) -> pa.Table:
    """What plain DataFusion answers when these are in-memory tables."""
    context = SessionContext()
    for name, table in tables.items():
        context.register_record_batches(name, [table.to_batches() or [_no_rows(table.schema)]])
    return context.sql(query).to_arrow_table()


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def assert_answers(session: Session, query: str, **tables: pa.Table) -> pa.Table:
    """The session, where these tables are fed, distributes the query and answers like plain DataFusion over them."""
    frame = session.sql(query)
    assert frame.distribution().distributed, frame.distribution().reason
    found = frame.collect()
    compared = compare_tables(plain_answer(query, **tables), found, CompareOptions())
    assert compared.equal, f"{query}\n{compared.describe()}\n{frame.explain_text()}"
    return found


def units_seen(table: pa.Table) -> Counter[int]:
    """How many rows of each unit there are."""
    return Counter(table.column("unit").to_pylist())


def exactly_once(units: Iterable[int], rows: int = ROWS_PER_UNIT) -> Counter[int]:
    return Counter(dict.fromkeys(units, rows))


def settled(read: Callable[[], int]) -> int:
    """A number that does not change any more."""
    last, looks = read(), 0
    deadline = time.monotonic() + PATIENCE
    while looks < 15:
        time.sleep(0.01)
        now = read()
        last, looks = (now, looks + 1) if now == last else (now, 0)
        assert time.monotonic() < deadline, f"it goes on and on: {now}"
    return last
