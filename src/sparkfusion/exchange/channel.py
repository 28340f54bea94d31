"""A bounded channel of frames between running producers and one consumer in the same process."""

from __future__ import annotations

import threading
from collections import deque

import pyarrow as pa

from sparkfusion.errors import QueryCancelledError

_TURN_SECONDS = 0.2


class ChannelClosedError(Exception):
    """The consumer has closed the channel. A producer that gets this error stops; it is not a failure."""


class Channel:
    """Holds frames until the consumer takes them, at most `capacity`. When it is full, producers wait.

    There may be any number of producer threads, and one consumer. `close`, called by the consumer, wakes and ends all
    producers. `finish`, called by the coordinator, does so too, and the consumer then gets the remaining frames and the
    end. With an error, the consumer raises it at once.

    The consumer may be the main thread, where Ctrl-C raises between any two steps of Python code, also within
    `threading.Condition`, which then stays locked. So the consumer takes plain locks only.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._frames: deque[pa.RecordBatch] = deque()
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)  # producers wait for room
        self._news = threading.Lock()  # the consumer waits for this lock, which is held until something has changed
        self._closed = False
        self._finished = False
        self._dropped = False
        self._error: BaseException | None = None

    def put(self, frame: pa.RecordBatch) -> None:
        with self._lock:
            self._room.wait_for(lambda: self._over() or len(self._frames) < self._capacity)
            if self._over():
                raise ChannelClosedError
            self._frames.append(frame)
            self._tell_consumer()

    def get(self) -> pa.RecordBatch | None:
        """The next frame; None at the end. Raises `ChannelClosedError` if frames were dropped by a close.

        Waits in short steps: a long wait does not notice Ctrl-C if a library's signal handler restarts system calls, as
        that of polars does.
        """
        while True:
            with self._lock:
                if self._frames or self._over():
                    return self._take()
            self._news.acquire(timeout=_TURN_SECONDS)

    def next_frame(self) -> pa.RecordBatch | None:
        """The same for a program that reads a query: a close cancels the query."""
        try:
            return self.get()
        except ChannelClosedError:
            raise QueryCancelledError("the query was closed while its rows were read") from None

    def _take(self) -> pa.RecordBatch | None:
        if self._error is not None:
            raise self._error
        if self._dropped:
            raise ChannelClosedError
        if not self._frames:
            return None
        frame = self._frames.popleft()
        self._room.notify_all()
        return frame

    def finish(self, error: BaseException | None = None) -> None:
        with self._lock:
            self._finished = True
            self._error = self._error or error
            self._room.notify_all()
            self._tell_consumer()

    def _tell_consumer(self) -> None:
        if self._news.locked():
            self._news.release()

    def _over(self) -> bool:
        return self._closed or self._finished

    def close(self) -> None:
        with self._lock:
            self._dropped = self._dropped or bool(self._frames) or not self._finished
            self._closed = True
            self._frames.clear()
            self._room.notify_all()
            self._tell_consumer()
