"""Rows of a task that the reader has already, so that another attempt can go on behind them.

Another attempt may be another run of the same plan: nothing says that its rows come in the same order. So it has to
begin with the very frames that the reader has. What the reader then has in the end is what that attempt made.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pyarrow as pa

from sparkfusion.errors import ExternalError

_DIGEST_BYTES = 16
Put = Callable[[pa.RecordBatch], None]


class PassedRows:
    """How many frames of one task have reached the reader, and which. Attempts follow each other, in any threads.

    Args:
        resumes: look at every frame, so that another attempt can be compared; without that there can be none.
    """

    def __init__(self, put: Put, *, resumes: bool) -> None:
        self.resumes = resumes
        self._put = put
        self._frames = 0
        self._digest = b""

    @property
    def begun(self) -> bool:
        """Whether the reader has some of the rows."""
        return self._frames > 0

    @property
    def final(self) -> bool:
        """Whether no attempt can follow."""
        return self._frames > 0 and not self.resumes

    def attempt(self) -> AttemptRows:
        return AttemptRows(self)

    def take(self, place: int, frame: pa.RecordBatch, digest: bytes) -> None:
        """The frame at that place of an attempt, and what all frames up to it amount to."""
        if place > self._frames:
            self._put(frame)
            self._frames, self._digest = place, digest
        elif place == self._frames and digest != self._digest:
            raise OtherRowsError

    def end(self, frames: int) -> None:
        """An attempt has no more than so many."""
        if frames < self._frames:
            raise OtherRowsError


class AttemptRows:
    """The rows of one attempt: those that the reader has are compared, those behind them go to it."""

    def __init__(self, passed: PassedRows) -> None:
        self._passed = passed
        self._seen = 0
        self._hash = hashlib.blake2b(digest_size=_DIGEST_BYTES)

    def __call__(self, frame: pa.RecordBatch) -> None:
        self._seen += 1
        if self._passed.resumes:
            self._hash.update(_content(frame))
        self._passed.take(self._seen, frame, self._hash.digest())

    def finish(self) -> None:
        self._passed.end(self._seen)


class OtherRowsError(ExternalError):
    """Another attempt does not begin with what the reader has; no other will be made."""

    def __init__(self) -> None:
        super().__init__(
            "a task that was tried again gives its rows in another order, and the reader has some of them already",
            hint="run the query again",
        )


def _content(frame: pa.RecordBatch) -> memoryview:
    """What is in a frame, dictionaries too, whatever it shares with others."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, frame.schema) as writer:
        writer.write_batch(frame)
    return memoryview(sink.getvalue())
