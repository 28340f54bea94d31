"""Items: anything that can be iterated over, as a feed."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from sparkfusion.errors import UserError
from sparkfusion.feed.provider import FeedContext, Reader, Units, WorkUnitFeedProvider
from sparkfusion.feed.units import FileUnit, WorkUnit

ItemSource = Iterable[Any] | AsyncIterable[Any] | Callable[[], Iterable[Any] | AsyncIterable[Any]]


class Items(WorkUnitFeedProvider):
    """The payloads, or work units, of an iterable.

    Args:
        items: a list or another iterable, or a function that returns one and is called for each scan. The function may
            be a generator, also an asynchronous one. An iterator can be read by only one scan of one query.
        reader: makes rows of an item's unit, on the workers: `reader(unit, context)`, with `unit.payload`.
        schema: the schema of these rows.
        format: the format of the files, instead of a reader, if items are paths of files, or `FileUnit`s.
        partition_columns: the partition columns of `FileUnit`s, as in `register_feed`.
    """

    def __init__(
        self,
        items: ItemSource,
        reader: Reader | None = None,
        *,
        schema: pa.Schema | None = None,
        format: str | None = None,
        partition_columns: Sequence[str | tuple[str, pa.DataType]] = (),
    ) -> None:
        if isinstance(items, str | bytes | Mapping) or not (
            callable(items) or isinstance(items, Iterable | AsyncIterable)
        ):
            raise UserError(f"items must be an iterable or a function that returns one, not a {type(items).__name__}")
        self.reader = reader
        self.format = format
        self.schema = schema
        self.partition_columns = partition_columns
        self._items = items
        self._once = not callable(items) and isinstance(items, Iterator | AsyncIterator)
        self._taken = False
        self._lock = threading.Lock()

    def feed(self, partition: int | None, context: FeedContext) -> Units:
        found = self._take()
        if isinstance(found, AsyncIterable):
            return self._async_units(found)
        if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
            raise UserError(f"the function of items returned a {type(found).__name__}, not an iterable")
        return self._units(found)

    def _take(self) -> Any:
        if callable(self._items):
            return self._items()
        with self._lock:
            if self._once and self._taken:
                raise UserError(
                    "its items come from an iterator, which can be read only once",
                    hint="pass a list, or a function that makes a new iterator for each scan",
                )
            self._taken = True
        return self._items

    def _units(self, items: Iterable[Any]) -> Iterator[WorkUnit]:
        for item in items:
            yield self._unit(item)

    async def _async_units(self, items: AsyncIterable[Any]) -> AsyncIterator[WorkUnit]:
        async for item in items:
            yield self._unit(item)

    def _unit(self, item: Any) -> WorkUnit:
        if isinstance(item, WorkUnit):
            return item
        if self.format is not None and isinstance(item, str | os.PathLike):
            path = os.fspath(item)
            return FileUnit(path if "://" in path else str(Path(path).absolute()))
        return WorkUnit(item)
