"""What both sides of a Flight connection share: names of calls, headers, pieces of files, and how a call ends."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

TASK = b"task"
LEASE = b"lease"
FRAMES = b"frames"
FEED = b"feed"
WORKER = b"worker"
TOKEN_HEADER = "authorization"
SECRET_HEADER = "x-sparkfusion-secret"
PIECE_BYTES = 4 * 1024 * 1024
RENEW_SECONDS = 0.5

PIECES = pa.schema([pa.field("file", pa.uint32()), pa.field("data", pa.large_binary())])
"""Bytes of files are sent as they are: a frame is neither decompressed nor encoded again on its way."""


def bearer(token: str) -> str:
    return f"Bearer {token}"


def piece_batch(index: int, data: pa.Buffer) -> pa.RecordBatch:
    """A piece as a batch, without a copy."""
    offsets = pa.array([0, len(data)], pa.int64()).buffers()[1]
    column = pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, data])
    return pa.RecordBatch.from_arrays([pa.array([index], pa.uint32()), column], schema=PIECES)


def piece_of(batch: pa.RecordBatch) -> tuple[int, pa.Buffer]:
    index = batch.column(0)[0].as_py()
    return index, batch.column(1)[0].as_buffer()


def end_call(writer: Any, reader: Any, *, clean: bool) -> None:
    """End an exchange call from the client's side. If not `clean`, the call is cancelled. Never raises.

    If a writer is dropped without this, Arrow closes it and prints errors.
    """
    if not clean:
        reader.cancel()
    try:
        writer.close()
    except (pa.ArrowException, OSError):  # cancelled, or the other side has gone
        return
