"""End an exchange call. If a writer is dropped without this, Arrow closes it and prints errors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def end_call(writer: Any, reader: Any, *, clean: bool) -> None:
    """End a call from the client's side. If not `clean`, the call is cancelled. Never raises."""
    if not clean:
        reader.cancel()
    try:
        writer.close()
    except (pa.ArrowException, OSError):  # cancelled, or the other side has gone
        return
