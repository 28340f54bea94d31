"""Give units to tasks: on demand, with a bound on waiting units, fairly by weight, and the same units to every
attempt."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from sparkfusion.errors import InternalError, QueryCancelledError, SparkfusionError, UserError, first_words
from sparkfusion.feed.feed import WorkUnitFeed
from sparkfusion.feed.ledger import Grant, Ledger
from sparkfusion.feed.provider import FeedContext
from sparkfusion.feed.unit_codec import encode_unit
from sparkfusion.feed.unit_queues import Found, UnitQueue, pull, start_thread
from sparkfusion.feed.units import FileUnit, WorkUnit

MOST_UNITS_AT_ONCE = 1000
_MOST_BYTES_AHEAD = 64 * 1024 * 1024


class FeedError(UserError):
    """A feed's provider failed, or returned something that is not a work unit. The query fails; it is not retried."""


class NoGrant(Enum):
    """The answers that a task may get instead of units."""

    WAIT = "nothing yet, ask again"
    END = "there will be no more"


@dataclass(frozen=True)
class FeedStats:
    """The state of a feed at one moment. All numbers except the seconds count units.

    Attributes:
        found: found by the provider so far. `handed`: given to tasks. `done`: read by tasks.
        replayed: given again, to another attempt. `failed`: being read by attempts that failed.
        waiting: found and not yet given to a task. `most_waiting`: the most that ever waited.
        first_unit_seconds: from the start of the query to the first unit. `wait_seconds`: how long all tasks together
            waited for units.
    """

    table: str
    found: int
    handed: int
    done: int
    replayed: int
    failed: int
    waiting: int
    most_waiting: int
    first_unit_seconds: float | None
    wait_seconds: float
    discovering: bool
    provider: tuple[tuple[str, float], ...] = ()


class Dispatcher:
    """One scan of a feed in one query. Any thread may call any method.

    Args:
        ahead: how many units may wait for tasks. When there are that many, the provider has to wait.
        files: whether units must be files.
        on_error: called once, from the provider's thread, if the provider fails.
        on_change: called after every change of the feed's statistics.
    """

    def __init__(
        self,
        feed: WorkUnitFeed,
        context: FeedContext,
        *,
        partitions: int | None,
        ahead: int,
        files: bool,
        on_error: Callable[[SparkfusionError], None] = lambda error: None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.context = context
        self._feed = feed
        self._ahead = ahead if partitions is None else max(1, ahead // context.tasks)
        self._files = files
        self._on_error = on_error
        self._on_change = on_change
        self._changed = threading.Condition()
        self._ledger = Ledger()
        self._queues = (
            [UnitQueue(None)] if partitions is None else [UnitQueue(partition) for partition in range(partitions)]
        )
        self._shared = partitions is None
        self._unread = iter(self._queues)
        self._queue_of: dict[int, UnitQueue] = {}
        self._error: SparkfusionError | None = None
        self._stopped = self._satisfied = False
        self._satisfied_by: int | None = None
        self._threads: list[threading.Thread] = []
        self._started_at = time.perf_counter()
        self._found = self._replayed = self._failed = self._most_waiting = 0
        self._first_unit: float | None = None
        self._wait_seconds = 0.0

    # ---- the coordinator's side

    def start(self) -> None:
        """Find units of a shared feed, up to the bound, before a task asks. The units of a partition are found when a
        task takes the partition."""
        if self._shared:
            with self._changed:
                self._begin(self._queues[0])

    def wait_for_work(self) -> None:
        """Wait until a task would have something to do: units, the end, or an error."""
        if not self._shared:
            return
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopped or self._error or self._queues[0].waiting or self._queues[0].ended
            )

    def stop(self) -> None:
        """Stop asking the provider for units; returns at once. Tasks that wait for units get a
        `QueryCancelledError`."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self.context.stop()

    def join(self, seconds: float) -> None:
        """After `stop`: wait a moment for the provider's threads. A thread that blocks is left alone."""
        deadline = time.monotonic() + seconds
        for thread in list(self._threads):
            if thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))

    def stats(self) -> FeedStats:
        with self._changed:
            return FeedStats(
                table=self.context.table,
                found=self._found,
                handed=self._ledger.given,
                done=self._ledger.done,
                replayed=self._replayed,
                failed=self._failed,
                waiting=sum(len(queue.waiting) for queue in self._queues),
                most_waiting=self._most_waiting,
                first_unit_seconds=self._first_unit,
                wait_seconds=self._wait_seconds,
                discovering=not self._stopped and any(not queue.ended for queue in self._queues),
                provider=tuple(sorted(self.context.metrics.items())),
            )

    # ---- the tasks' side

    def take(self, task: int, offset: int, *, host: str = "", patience: float | None = None) -> Grant | NoGrant:
        """The grant at that offset of the task's ledger. If the ledger ends there, new units are appended to it.

        Asking for an offset confirms that everything before it is done. Asking again gives the same grant: attempts may
        repeat it, and several attempts at a task may ask at once. Waits up to `patience` seconds, or without it until
        there is an answer. Raises the provider's error, and `QueryCancelledError` when the query is over.
        """
        deadline = None if patience is None else time.monotonic() + patience
        try:
            with self._changed:
                if task < 0 or not 0 <= offset <= self._ledger.length(task):
                    raise InternalError(f"task {task} asks for grant {offset}, but it has been given fewer")
                self._ledger.acknowledge(task, offset)
                began = time.perf_counter()
                try:
                    return self._take(task, offset, host, deadline)
                finally:
                    self._wait_seconds += time.perf_counter() - began
        finally:
            self._on_change()

    def report_failure(self, task: int, offset: int) -> None:
        """Count the units of the grant at that offset as failed: an attempt failed while it worked on them."""
        with self._changed:
            grant = self._ledger.at(task, offset)
            self._failed += grant.units if grant is not None else 0

    def stop_others(self, task: int | None) -> None:
        """Give no more units to the other tasks, because this task (None: one of another feed) has all rows that are
        needed. The task itself may get more if it is retried and finds other rows."""
        with self._changed:
            self._satisfied = True
            if task is not None:
                self._ledger.acknowledge(task, self._ledger.length(task))
            self._satisfied_by = task if self._satisfied_by is None else self._satisfied_by
            self._changed.notify_all()

    def _take(self, task: int, offset: int, host: str, deadline: float | None) -> Grant | NoGrant:
        while True:
            if self._stopped:
                raise QueryCancelledError("the query needs no more units")
            if self._error is not None:
                raise self._error
            known = self._ledger.at(task, offset)  # given to an earlier attempt, or to one that asks at the same time
            if known is not None:
                self._replayed += known.units
                return known
            if self._ledger.is_sealed(task):
                return NoGrant.END
            if self._satisfied and task != self._satisfied_by:
                self._ledger.seal(task)
                return NoGrant.END
            queue = self._queue_for(task)
            if queue is None:
                self._ledger.seal(task)
                return NoGrant.END
            if queue.waiting:
                return self._give(task, queue, host)
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return NoGrant.WAIT
            self._changed.wait(left)

    def _give(self, task: int, queue: UnitQueue, host: str) -> Grant:
        sharers = self.context.tasks if self._shared else 1
        taken = queue.take(queue.weight / sharers, MOST_UNITS_AT_ONCE, host)
        grant = Grant.of(found.encoded for found in taken)
        self._ledger.append(task, grant)
        self._changed.notify_all()
        return grant

    def _queue_for(self, task: int) -> UnitQueue | None:
        """The queue that the task reads now: the shared one, or its partition, or the next one that no task has."""
        if self._shared:
            return None if self._queues[0].exhausted else self._queues[0]
        queue = self._queue_of.get(task)
        if queue is None or queue.exhausted:
            queue = next(self._unread, None)
            if queue is not None:
                self._queue_of[task] = queue
                self._begin(queue)
        return queue

    # ---- the provider's side

    def _begin(self, queue: UnitQueue) -> None:
        if not queue.started and not self._stopped:
            queue.started = True
            name = f"sparkfusion-{self.context.query}-feed-{self.context.table}"
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._threads.append(start_thread(lambda: self._discover(queue), name))

    def _discover(self, queue: UnitQueue) -> None:
        """Run the provider for one queue, on its own thread."""
        error: SparkfusionError | None = None
        try:
            units = self._feed.open(queue.partition, self.context)
            pull(units, lambda unit: self._offer(queue, unit), self.context.on_stop)
        except BaseException as raised:
            error = self._blame_provider(raised)
        told = False
        with self._changed:
            queue.ended = True
            if error is not None and not self._stopped and self._error is None:
                self._error, told = error, True
            self._changed.notify_all()
        self._on_change()
        if told and error is not None:
            self._on_error(error)

    def _offer(self, queue: UnitQueue, unit: WorkUnit) -> bool:
        encoded = self._check_unit(unit)
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._error or self._has_room(queue))
            if self._stopped or self._error is not None:
                return False
            if self._first_unit is None:
                self._first_unit = time.perf_counter() - self._started_at
            queue.add(Found(encoded, unit.weight, unit.hosts))
            self._found += 1
            self._most_waiting = max(self._most_waiting, len(queue.waiting))
            self._changed.notify_all()
        self._on_change()
        return True

    def _has_room(self, queue: UnitQueue) -> bool:
        return len(queue.waiting) < self._ahead and queue.bytes < _MOST_BYTES_AHEAD

    def _check_unit(self, unit: object) -> str:
        if not isinstance(unit, WorkUnit) or (self._files and not isinstance(unit, FileUnit)):
            wanted = "FileUnit" if self._files else "WorkUnit"
            raise FeedError(f"it yielded a {type(unit).__qualname__}, not a {wanted}")
        return encode_unit(unit)

    def _blame_provider(self, error: BaseException) -> SparkfusionError:
        words = (
            error.message if isinstance(error, SparkfusionError) else f"{type(error).__name__}: {first_words(error)}"
        )
        hint = error.hint if isinstance(error, SparkfusionError) else None
        made = FeedError(f"the feed of table {self.context.table!r} failed: {words}", hint=hint)
        made.__cause__ = error
        return made
