"""Carry out a task order: the same code on a thread of this process, in a worker's child process, and on Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from sparkfusion.errors import InternalError
from sparkfusion.exchange.delivery import Deliver, GrantSink
from sparkfusion.exchange.sink import ConsumerSink, FileSink, Sink
from sparkfusion.exchange.store import FrameStore
from sparkfusion.feed.feed import UnitSource
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.copy import CopySink
from sparkfusion.worker.run_task import run_task
from sparkfusion.worker.task import TaskOrder, TaskReport
from sparkfusion.worker.task_context import Surroundings
from sparkfusion.worker.user_functions import NO_OWN_FUNCTIONS, OwnFunctions, feed_end_of, prepare_of


def _no_rows(batch: pa.RecordBatch) -> None:
    raise InternalError("a task has rows for the consumer but no connection to it")


def _ignore(data: memoryview) -> None:
    del data


@dataclass(frozen=True)
class TaskEnds:
    """How a running task reaches the coordinator.

    Attributes:
        rows: takes a frame for the consumer, and waits while there is no room. An error that it raises ends the task.
        units: where the task's work units come from.
        deliver: takes all frames that a task with a feed made from one offset of its ledger, for the consumer. They are
            delivered together, so a later attempt can continue after them. Tasks with a feed use it instead of `rows`.
        read: gets the bytes of each frame before `rows` gets the frame, if frames come as bytes. A task that fails
            after `rows` took frames can be retried only if `read` got all of them.
    """

    rows: Callable[[pa.RecordBatch], None] = _no_rows
    units: UnitSource | None = None
    deliver: Deliver | None = None
    read: Callable[[memoryview], None] = _ignore


@dataclass(frozen=True)
class TaskStores:
    """Where a task writes: frames for other tasks, and rows that will become files of the user."""

    frames: FrameStore
    files: FrameStore


def carry_out(
    order: TaskOrder,
    around: Surroundings,
    stores: TaskStores | None,
    ends: TaskEnds,
    cancel: CancelToken,
    own: OwnFunctions = NO_OWN_FUNCTIONS,
) -> TaskReport:
    """Run a task whose inputs are local files, in this thread. Raises classified errors, as `run_task` does.

    Args:
        stores: None for a task whose rows go to the consumer.
    """
    around = replace(around, prepare=prepare_of(order, own), spills=order.spills)
    sink = _sink(order, around, stores, ends)
    return run_task(order, around, sink, cancel, feed_end_of(order, own, ends.units))


def _sink(order: TaskOrder, around: Surroundings, stores: TaskStores | None, ends: TaskEnds) -> Sink:
    if order.writes is not None or order.destination == "store":
        if stores is None:
            raise InternalError("a task has rows for a store but got none")
        if order.writes is not None:
            return CopySink(order.key, stores.files, order.writes)
        return FileSink(order.key, stores.frames, order.compression)
    if order.feed is None or ends.deliver is None:
        return ConsumerSink(order.key, ends.rows)
    return GrantSink(order.key, around.spill_directory, ends.deliver)
