"""The user's functions that a task needs. They came with its order, or this process has them already."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkfusion.errors import UserError
from sparkfusion.feed.feed import UnitSource
from sparkfusion.feed.provider import Reader
from sparkfusion.ids import FeedId
from sparkfusion.worker.task import TaskOrder
from sparkfusion.worker.task_context import PrepareContext
from sparkfusion.worker.unit_files import FeedEnd


@dataclass(frozen=True)
class OwnFunctions:
    """The user's functions in the coordinator's own process, where they need not be pickled.

    Attributes:
        prepare: gives a task's context the session's object stores.
        readers: the readers of feeds.
    """

    prepare: PrepareContext | None = None
    readers: Mapping[FeedId, Reader | None] = field(default_factory=dict)


NO_OWN_FUNCTIONS = OwnFunctions()


def prepare_of(order: TaskOrder, own: OwnFunctions) -> PrepareContext | None:
    """The function that gives the task's context the session's object stores."""
    return own.prepare if order.recipe is None else _unpickle(order.recipe)


def feed_end_of(order: TaskOrder, own: OwnFunctions, units: UnitSource | None) -> FeedEnd | None:
    if units is None or order.feed is None:
        return None
    reader = own.readers.get(order.feed.feed) if order.reader is None else _unpickle(order.reader)
    return FeedEnd(units, reader, order.first)


def _unpickle(data: bytes) -> Any:
    """Unpickle a function. Only called if the worker trusts Python functions, which the guard has checked."""
    try:
        return pickle.loads(data)
    except Exception as error:
        raise UserError(
            f"a function of the query cannot be loaded on the worker: {type(error).__name__}: {error}",
            hint="install the module that defines it on the workers, or define it in the main program",
        ) from error
