"""Sort orders of a whole listing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from sparkfusion.errors import UserError
from sparkfusion.feed.ready.walk import ListedFile

Order = Literal["name", "newest", "oldest", "largest"] | Callable[[ListedFile], Any]

_ORDERS: dict[str, Callable[[ListedFile], Any]] = {
    "name": lambda file: file.path,
    "newest": lambda file: (-file.modified, file.path),
    "oldest": lambda file: (file.modified, file.path),
    "largest": lambda file: (-file.size, file.path),
}


def sort_key(order: Order | None) -> Callable[[ListedFile], Any] | None:
    """The key to sort files by; None to take them as they come."""
    if isinstance(order, str) and order not in _ORDERS:
        raise UserError(f"unknown order {order!r}", hint=f"one of {', '.join(_ORDERS)}, or a function")
    return _ORDERS[order] if isinstance(order, str) else order
