"""Rows on their way up, from a task on a worker to the reader. Who waits for the reader lends the slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from sparkfusion.exchange.delivery import GrantSink
from sparkfusion.exchange.manifest import Manifest
from sparkfusion.exchange.sink import Sink
from sparkfusion.ids import TaskKey
from sparkfusion.transport.base import TaskEnds
from sparkfusion.transport.slot import Slot
from sparkfusion.worker.task import TaskSpec


def reader_sink(spec: TaskSpec, ends: TaskEnds, slot: Slot) -> Sink:
    deliver = ends.deliver
    if spec.feed is None or deliver is None:
        return UpwardSink(spec.key, ends.rows, slot)

    def deliver_lent(offset: int, frames: Iterator[pa.RecordBatch]) -> None:
        with slot.lent():
            deliver(offset, frames)

    return GrantSink(spec.key, spec.spill_directory, deliver_lent)


class UpwardSink:
    """Hands every frame up as it comes."""

    def __init__(self, key: TaskKey, rows: Callable[[pa.RecordBatch], None], slot: Slot) -> None:
        self._key = key
        self._rows = rows
        self._slot = slot

    def write(self, partition: int, batch: pa.RecordBatch) -> None:
        del partition
        with self._slot.lent():
            self._rows(batch)

    def finish(self) -> Manifest:
        return Manifest(self._key)

    def abort(self) -> None:
        return
