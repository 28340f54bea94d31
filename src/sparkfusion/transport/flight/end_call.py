"""Ending an exchange call: Arrow closes a writer that is thrown away, and prints what goes wrong then."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def end_call(writer: Any, reader: Any, *, clean: bool) -> None:
    """End a call from the client's side; where it is not `clean`, whatever is under way is given up. Never raises."""
    if not clean:
        reader.cancel()
    try:
        writer.close()
    except (pa.ArrowException, OSError):  # cancelled, or the other side has gone
        return
