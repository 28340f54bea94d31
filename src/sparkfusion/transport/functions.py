"""Functions of the user's that came with an order."""

from __future__ import annotations

import pickle
from typing import Any

from sparkfusion.errors import UserError
from sparkfusion.feed.feed import UnitSource
from sparkfusion.transport.base import TaskOrder
from sparkfusion.transport.options import OwnFunctions
from sparkfusion.worker.run_task import PrepareContext
from sparkfusion.worker.units import FeedEnd


def prepare_of(order: TaskOrder, own: OwnFunctions) -> PrepareContext | None:
    """What gives the task's context the session's object stores."""
    return own.prepare if order.recipe is None else _unpickled(order.recipe)


def feed_end_of(order: TaskOrder, own: OwnFunctions, units: UnitSource | None) -> FeedEnd | None:
    feed = order.spec.feed
    if units is None or feed is None:
        return None
    reader = own.readers.get(feed.feed) if order.reader is None else _unpickled(order.reader)
    return FeedEnd(units, reader, order.first)


def _unpickled(data: bytes) -> Any:
    """Only called where Python is trusted, which the guard has checked."""
    try:
        return pickle.loads(data)
    except Exception as error:
        raise UserError(
            f"a function of the query cannot be loaded on the worker: {type(error).__name__}: {error}",
            hint="install the module that defines it on the workers, or define it in the main program",
        ) from error
