"""Where tasks of Spark ask for work units. Nothing here needs Flight, so it can be sent to any executor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sparkfusion.errors import ExternalError, first_words
from sparkfusion.ids import FeedId, QueryId
from sparkfusion.worker.carry_out import TaskEnds


@dataclass(frozen=True)
class FeedAddress:
    """How a task reaches the coordinator's feed server. The secret is the query's. `certificate`: the server's, if it
    talks TLS."""

    host: str
    port: int
    query: QueryId
    secret: str = field(repr=False)
    certificate: bytes = field(default=b"", repr=False)


def driver_unreachable(host: str, port: int, error: Exception) -> ExternalError:
    """The error of a task or a resident worker that gets no answer from the feed server."""
    return ExternalError(
        f"the driver's feed server at {host}:{port} does not answer: {first_words(error)[:200]}",
        hint="set sparkfusion.feed_host and sparkfusion.feed_port to an address of the driver that executors reach",
    )


@dataclass(frozen=True)
class MailAddress:
    """The mailbox of a query, for tasks that do not reach the coordinator: messages are files in its store.

    Attributes:
        location: a directory or URL; may hold secrets.
        secret: signs the messages of the query.
        patience: seconds of silence after which the coordinator counts as lost.
    """

    location: str = field(repr=False)
    query: QueryId
    secret: str = field(repr=False)
    patience: float


@dataclass(frozen=True)
class FedTask:
    """Which task asks, for which feed, on which machine. `is_gone`: whether the task no longer waits for the answer."""

    feed: FeedId
    task: int
    host: str
    is_gone: Callable[[], bool]


@dataclass(frozen=True)
class ServedQuery:
    """What the feed server may give and take for one query.

    Attributes:
        ends: serves a task. Raises if there is no such feed.
        first: the offset at which an attempt begins, for a task whose rows go to the consumer.
        directory: for rows that wait until those of one offset in the ledger are complete.
    """

    ends: Callable[[FedTask], TaskEnds]
    first: Callable[[int], int]
    directory: str = ""
