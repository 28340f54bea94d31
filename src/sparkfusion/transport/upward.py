"""Rows on their way up, from a task on a worker to the reader."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from sparkfusion.exchange.delivery import GrantSink
from sparkfusion.exchange.manifest import Manifest
from sparkfusion.exchange.sink import Sink
from sparkfusion.ids import TaskKey
from sparkfusion.transport.base import TaskEnds
from sparkfusion.worker.task import TaskSpec


def reader_sink(spec: TaskSpec, ends: TaskEnds) -> Sink:
    if spec.feed is None or ends.deliver is None:
        return UpwardSink(spec.key, ends.rows)
    return GrantSink(spec.key, spec.spill_directory, ends.deliver)


class UpwardSink:
    """Hands every frame up as it comes."""

    def __init__(self, key: TaskKey, rows: Callable[[pa.RecordBatch], None]) -> None:
        self._key = key
        self._rows = rows

    def write(self, partition: int, batch: pa.RecordBatch) -> None:
        del partition
        self._rows(batch)

    def finish(self) -> Manifest:
        return Manifest(self._key)

    def abort(self) -> None:
        return
