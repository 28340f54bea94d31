"""WorkUnitFeed: a provider as plans and tasks see it."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from sparkfusion.errors import UserError
from sparkfusion.feed.provider import FeedContext, Reader, ScanRequest, Units, WorkUnitFeedProvider
from sparkfusion.feed.unit_codec import unpack
from sparkfusion.feed.units import WorkUnit
from sparkfusion.ids import FeedId

_END = object()


class UnitSource(Protocol):
    """Where a task's units come from: a dispatcher in this process, or a connection to one."""

    def take(self, offset: int) -> bytes | None:
        """The packed units at that offset of the task's ledger; None at the end. Waits for them.

        Asking for an offset confirms that everything before it is done; asking again gives the same units.
        """
        ...

    def report_failure(self, offset: int) -> None:
        """Called when an attempt fails while it works on the units at that offset. Never raises."""
        ...

    def enough(self) -> None:
        """Called when the task has all rows that its stage needs, so that other tasks need no more units. Never
        raises."""
        ...


class WorkUnitFeed:
    """A provider with an id. Where the feed was made it is *local* and asks its provider for units. Pickling keeps only
    the id: an unpickled feed is *remote* and gets its units from the coordinator. Code that reads units works with
    both.
    """

    def __init__(self, provider: WorkUnitFeedProvider) -> None:
        self.id = uuid.uuid4().hex
        self._provider: Any = provider
        self._is_local = True
        self._source: UnitSource | None = None
        self._trust_python = True
        self._lock = threading.Lock()
        self._consumed: set[int | None] = set()

    @classmethod
    def remote(cls, id: str, source: UnitSource | None = None, *, trust_python: bool = True) -> WorkUnitFeed:
        """The feed with that id on a worker; `source` is the task's connection to the coordinator."""
        made = cls.__new__(cls)
        made.id = id
        made._provider = None
        made._is_local = False
        made._source = source
        made._trust_python = trust_python
        made._lock = threading.Lock()
        made._consumed = set()
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return WorkUnitFeed.remote, (self.id,)

    @property
    def is_local(self) -> bool:
        return self._is_local

    def inner(self) -> WorkUnitFeedProvider:
        """The provider, in the process that has it."""
        if not self.is_local:
            raise UserError(
                f"feed {self.id} has no provider in this process; only the coordinator has it",
                hint="read its units instead: a worker can do that without the provider",
            )
        provider: WorkUnitFeedProvider = self._provider
        return provider

    def open(self, partition: int | None, context: FeedContext) -> Units:
        """Call the provider. Used by the coordinator, once for each scan and partition."""
        return self.inner().feed(partition, context)

    def batches(self, partition: int | None = None, *, first: int = 0) -> Iterator[tuple[WorkUnit, ...]]:
        """The units, in batches as they are found. Asking for the next batch confirms that those before are done.

        Args:
            first: on a worker, the offset in the task's ledger to begin at.
        """
        with self._lock:
            if partition in self._consumed:
                raise UserError(f"partition {partition} of feed {self.id} was already read")
            self._consumed.add(partition)
        return self._local_batches(partition) if self.is_local else self._remote_batches(first)

    def units(self, partition: int | None = None) -> Iterator[WorkUnit]:
        """Every unit of a partition, or of a shared feed. Each can be read once."""
        return (unit for batch in self.batches(partition) for unit in batch)

    def _local_batches(self, partition: int | None) -> Iterator[tuple[WorkUnit, ...]]:
        context = FeedContext("", "", ScanRequest(()), tasks=1)
        units = self.open(partition, context)
        try:
            for unit in iterate(units) if isinstance(units, AsyncIterable) else units:
                yield (unit,)
        finally:
            context.stop()
            self.inner().close()

    def _remote_batches(self, offset: int) -> Iterator[tuple[WorkUnit, ...]]:
        if self._source is None:
            raise UserError(f"feed {self.id} can be read only inside a task")
        while (data := self._source.take(offset)) is not None:
            yield unpack(data, trust_python=self._trust_python)
            offset += 1


@dataclass(frozen=True)
class FeedDeclaration:
    """One scan of a feed in one query, with all that the coordinator needs to run it and tasks need to read it.

    Attributes:
        files: whether units are files; otherwise `reader` turns them into rows, in the tasks.
        partitions: None for a shared feed.
        tasks: how many tasks read it.
    """

    feed: FeedId
    table: str
    source: WorkUnitFeed
    files: bool
    schema: pa.Schema
    request: ScanRequest
    tasks: int
    partitions: int | None = None
    partition_columns: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    reader: Reader | None = None


def iterate(items: AsyncIterable[Any]) -> Iterator[Any]:
    """The items of an asynchronous iterable, each awaited when it is asked for."""
    found = aiter(items)
    with asyncio.Runner() as runner:
        while (item := runner.run(_next(found))) is not _END:
            yield item


async def _next(items: AsyncIterator[Any]) -> Any:
    return await anext(items, _END)
