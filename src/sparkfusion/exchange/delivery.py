"""Deliver rows to the consumer while a task still takes work units: once, grant by grant.

Rows that the consumer has cannot be taken back. So a retried task continues after the grants that were delivered.
"""

from __future__ import annotations

import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from sparkfusion.exchange.channel import Channel
from sparkfusion.exchange.manifest import Manifest
from sparkfusion.ids import TaskKey

_IN_MEMORY_BYTES = 32 * 1024 * 1024

Deliver = Callable[[int, Iterator[pa.RecordBatch]], None]
"""(offset in the task's ledger, rows of that grant) → None; returns when the consumer has the rows."""


class FrameBuffer:
    """Frames of one grant: in memory while they are small, otherwise in a file of that directory. For one thread."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._frames: list[pa.RecordBatch] = []
        self._bytes = 0
        self._file: Any = None
        self._writer: Any = None

    def add(self, frame: pa.RecordBatch) -> None:
        self._frames.append(frame)
        self._bytes += frame.nbytes
        if self._bytes > _IN_MEMORY_BYTES:
            if self._writer is None:
                self._file = tempfile.NamedTemporaryFile(dir=self._directory or None, prefix="grant-")  # noqa: SIM115
                self._writer = pa.ipc.new_stream(self._file, frame.schema)
            for each in self._frames:
                self._writer.write_batch(each)
            self._frames, self._bytes = [], 0

    def frames(self) -> Iterator[pa.RecordBatch]:
        """Every frame in order; the buffer is empty afterwards."""
        if self._writer is not None:
            self._writer.close()
            self._file.flush()
            with pa.OSFile(self._file.name) as source, pa.ipc.open_stream(source) as reader:
                yield from reader
        yield from self._frames
        self.clear()

    def clear(self) -> None:
        self._frames, self._bytes = [], 0
        if self._file is not None:
            self._file.close()
        self._file = self._writer = None


class Delivery:
    """Records which grants of each streaming task the consumer has. Any thread may call any method."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._next: dict[int, int] = defaultdict(int)
        self._locks: dict[int, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def first(self, task: int) -> int:
        """The offset at which an attempt at the task begins: everything before it was delivered."""
        with self._guard:
            return self._next[task]

    def deliver(self, task: int, offset: int, frames: Iterable[pa.RecordBatch]) -> None:
        """Give the rows of one grant to the consumer, unless it already has them. Waits while the consumer is slow."""
        with self._guard:
            lock = self._locks[task]
        with lock:
            if offset < self.first(task):
                return
            for frame in frames:
                self._channel.put(frame)
            with self._guard:
                self._next[task] = offset + 1


class GrantSink:
    """The sink of a streaming task. It holds the rows of a grant until they are complete."""

    def __init__(self, key: TaskKey, directory: str, deliver: Deliver) -> None:
        self._key = key
        self._deliver = deliver
        self._buffer = FrameBuffer(directory)
        self._wrote = False

    def write(self, partition: int, batch: pa.RecordBatch) -> None:
        del partition  # a consumer has only one
        self._wrote = True
        self._buffer.add(batch)

    def commit(self, offset: int) -> None:
        """Deliver the rows of the grant at that offset, which are complete now."""
        if self._wrote:
            self._deliver(offset, self._buffer.frames())
        self._buffer.clear()
        self._wrote = False

    def finish(self) -> Manifest:
        return Manifest(self._key)

    def abort(self) -> None:
        self._buffer.clear()
