"""Serve one task that reads a feed, whichever way its messages come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sparkfusion.config import MIB
from sparkfusion.errors import ProtocolError, QueryCancelledError, SparkfusionError
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.runner.spark.feed_address import FedTask, ServedQuery
from sparkfusion.transport.caller_side import CallerSide
from sparkfusion.transport.codec import pack_error
from sparkfusion.transport.message import SMALL_MESSAGE, Fields, pack, unpack

MOST_BYTES = 256 * MIB
"""The largest message that is accepted, in either direction."""


class FedCall(Protocol):
    """A task's call as the coordinator sees it."""

    def receive(self) -> memoryview:
        """Wait for the task's next message."""
        ...

    def send(self, message: bytes) -> None: ...

    def send_last(self, message: bytes) -> None:
        """Send the message that ends the call, also to a task that is still writing."""
        ...

    @property
    def is_gone(self) -> Callable[[], bool]:
        """Whether the task no longer waits for an answer."""
        ...


def serve_fed_task(call: FedCall, find_query: Callable[[Fields], ServedQuery]) -> None:
    """Serve a task until it needs no more units. Errors are sent to it.

    Args:
        find_query: the query of the task, given its first message; raises if the task may not read it.
    """
    try:
        kind, fields, _ = unpack(call.receive(), SMALL_MESSAGE)
        if kind != "begin":
            raise ProtocolError(f"a call begins with 'begin', not with {kind!r}")
        served = find_query(fields)
        task = FedTask(fields.integer("feed"), fields.integer("task"), fields.text("host"), call.is_gone)
        ends = served.ends(task)
        call.send(pack("started", {"first": served.first(task.task)}))
        CallerSide("a task", call.receive, call.send, ends, MOST_BYTES, served.directory).serve_feed()
    except ChannelClosedError:
        call.send_last(pack_error(QueryCancelledError("the consumer closed the query")))
    except SparkfusionError as error:
        call.send_last(pack_error(error))
