"""The worker itself, the same behind every transport: it runs tasks, keeps their frames, and releases queries."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from sparkfusion.config import machine_memory, resident_bytes
from sparkfusion.errors import (
    ExternalError,
    LostInputError,
    QueryCancelledError,
    ResourceError,
    SparkfusionError,
    UserError,
    classify,
)
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.owned import DIRECTORY_PREFIX, LOCK
from sparkfusion.exchange.store import SHARED_MEMORY
from sparkfusion.ids import QueryId, TaskKey
from sparkfusion.log_fields import about
from sparkfusion.shared_secrets import is_same_secret
from sparkfusion.worker.awake_clock import AwakeClock
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds, carry_out
from sparkfusion.worker.server.fetch import Peers
from sparkfusion.worker.server.guard import TRUST, named_refusal
from sparkfusion.worker.server.held import HeldQuery, QueryStores
from sparkfusion.worker.server.rewrites import NamedRewrite, RewriteContext, apply_rewrites, installed_rewrites
from sparkfusion.worker.server.slot import Slot, lend_while_waiting
from sparkfusion.worker.server.task_processes import ChildOrder
from sparkfusion.worker.server.task_tally import TaskCounter, WorkerMetrics
from sparkfusion.worker.server.version import WorkerInfo, WorkerStatus, this_version
from sparkfusion.worker.server.worker_options import WorkerOptions
from sparkfusion.worker.task import Fetched, TaskOrder, TaskReport
from sparkfusion.worker.task_context import Surroundings

_log = logging.getLogger("sparkfusion")

SWEEP_SECONDS = 0.25
"""How often a worker looks for queries whose coordinator is silent."""


class WorkerService:
    """One worker. Any thread may call any method.

    Args:
        peers: gives access to other workers' frames, by address. None for a worker in the coordinator's own process,
            where all frames are files of this machine.
        rewrites: changes of every plan, in order; by default those that installed packages register.
    """

    def __init__(
        self, options: WorkerOptions, peers: Peers | None = None, rewrites: Sequence[NamedRewrite] | None = None
    ) -> None:
        self._options = options
        self._peers = peers
        self._rewrites = list(rewrites) if rewrites is not None else installed_rewrites()
        self._slots = threading.Semaphore(options.slots) if options.counts_slots else None
        self._lock = threading.Lock()
        self._queries: dict[QueryId, HeldQuery] = {}
        self._clock = AwakeClock(SWEEP_SECONDS)
        self._under_way = 0
        self._counter = TaskCounter()
        self._started_at = time.time()
        self.guard = options.guard
        self.closed = False

    @property
    def bases(self) -> tuple[Path, Path]:
        """The directories that hold the frames of all queries."""
        return Path(self._options.directory or tempfile.gettempdir()).absolute(), SHARED_MEMORY

    # ---- what it says of itself

    def info(self) -> WorkerInfo:
        return this_version(self._options.slots, trusts_python=self.guard.trust_python)

    def status(self) -> WorkerStatus:
        """What runs and what is stored on this worker now. Files are counted on disk."""
        with self._lock:
            queries = len(self._queries)
        own = [path for base in self.bases for path in base.glob(f"{DIRECTORY_PREFIX}{os.getpid()}-*")]
        sizes = [size for directory in own for size in _sizes(directory)]
        return WorkerStatus(self._under_way, queries, len(sizes), sum(sizes))

    def metrics(self) -> WorkerMetrics:
        """What it has done since it started, and what it holds now."""
        children = self._options.children
        memory = resident_bytes(os.getpid()) + (children.resident_bytes() if children is not None else 0)
        tally = self._counter.tally
        return WorkerMetrics(self.info(), self.status(), tally, memory, machine_memory(), self._started_at)

    def reaches(self, directory: str, name: str, content: str) -> bool:
        if not self.guard.allows(directory) or "/" in name:
            return False
        try:
            with (Path(directory) / name).open() as file:
                seen = file.read(len(content) + 1)
            with tempfile.TemporaryFile(dir=directory):
                pass
        except (OSError, ValueError):
            return False
        return is_same_secret(seen, content)

    # ---- queries

    def hold(self, query: QueryId, secret: str, on_lost: Callable[[], None] = lambda: None) -> None:
        """Accept tasks of a query until `release`. `on_lost` is called if the worker releases it by itself."""
        with self._lock:
            if query in self._queries or self.closed:
                raise ExternalError(f"query {query} is already on this worker, or the worker is shutting down")
            if len(self._queries) >= self.guard.limits.queries:
                raise ResourceError(f"a worker holds {self.guard.limits.queries:,} queries at most")
            self._queries[query] = HeldQuery(query, secret, self._options, self._peers, self._clock.now, on_lost)

    def renew(self, query: QueryId) -> None:
        """Note that the coordinator is alive. Raises if the worker no longer holds the query."""
        self._held_query(query).heard = self._clock.now

    def others(self, query: QueryId) -> int:
        """How many tasks of other queries run or wait here."""
        with self._lock:
            others = [held for name, held in self._queries.items() if name != query]
        return sum(held.running for held in others)

    def release(self, query: QueryId, *, lost: bool = False) -> None:
        """Release a query: end its tasks, remove its files. Idempotent. `lost`: the worker itself ends the query."""
        with self._lock:
            held = self._queries.pop(query, None)
        if held is not None:
            held.release(lost=lost)
            if lost:
                held.on_lost()

    def release_silent(self, seconds: float) -> None:
        """Release queries whose coordinator has sent nothing for this many seconds. One thread calls it, regularly."""
        silent = self._clock.tick() - seconds
        with self._lock:
            gone = [query for query, held in self._queries.items() if held.heard < silent]
        for query in gone:
            _log.warning("query %s is ended: its coordinator is silent", query, extra=about(query))
            self.release(query, lost=True)

    def opens(self, secret: str) -> bool:
        """Whether this is the secret of a query that is held."""
        with self._lock:
            held = list(self._queries.values())
        return any(is_same_secret(secret, each.secret) for each in held)

    def files(self, query: QueryId, secret: str, names: Sequence[str]) -> list[Path]:
        """The paths of frames that tasks of a query reported."""
        held = self._held_query(query)
        if not is_same_secret(secret, held.secret):
            raise UserError("that is not the secret of this query")
        if len(names) > self.guard.limits.input_files:
            raise UserError(f"more than {self.guard.limits.input_files:,} files at once")
        paths = [held.find(name) for name in names]
        missing = [name for name, path in zip(names, paths, strict=True) if path is None]
        if missing:
            raise LostInputError(f"the worker no longer has file {missing[0]} of this query")
        return [path for path in paths if path is not None]

    def discard(self, key: TaskKey) -> None:
        with self._lock:
            held = self._queries.get(key.query)
        if held is not None:
            held.discard(key)

    def close(self) -> None:
        """Release all queries. Idempotent."""
        with self._lock:
            self.closed = True
        for query in list(self._queries):
            self.release(query, lost=True)

    # ---- tasks

    def run(self, order: TaskOrder, ends: TaskEnds, cancel: CancelToken) -> TaskReport:
        """Run a task in this thread as soon as a slot is free. Raises only errors of ours."""
        try:
            report = self._run(order, ends, cancel)
        except BaseException as error:
            self._counter.note_failure(error)
            raise
        self._counter.note_end(report)
        return report

    def _run(self, order: TaskOrder, ends: TaskEnds, cancel: CancelToken) -> TaskReport:
        key = order.key
        with self._lock:
            if self._under_way >= self.guard.limits.waiting:
                raise ResourceError(f"{self._under_way:,} tasks are already running or waiting here", where=key)
            self._under_way += 1
        held: HeldQuery | None = None
        accepted = False
        try:
            held = self._held_query(key.query)
            self.guard.check(order)
            accepted = True
            slot = Slot(self._slots, cancel)
            with held.task(order, cancel, slot) as stores, slot, self._counter.count_running():
                brought, fetched = self._bring(order, held, stores, cancel)
                local = replace(
                    brought,
                    plan=self._apply_rewrites(order),
                    memory_limit=self._memory_of(order),
                )
                run = self._run_here if self._options.children is None else self._run_in_child
                report = run(local, self._ends(ends, slot), cancel, stores)
                report = replace(report, fetched=fetched)
                return held.keep(report) if order.here and order.writes is None else report
        except BaseException as error:
            if held is not None and held.lost:  # its files went while it ran; elsewhere it may run again
                raise ExternalError("the worker ended the query while the task ran", where=key) from error
            if isinstance(error, ChannelClosedError) or (accepted and cancel.cancelled):
                raise QueryCancelledError("the task was cancelled", where=key) from None
            found = _name_refusal(classify(error, key))
            if found is error:
                raise
            raise found from error
        finally:
            with self._lock:
                self._under_way -= 1

    def _memory_of(self, order: TaskOrder) -> int:
        return min(order.memory_on(self._options.slots, self._options.task_memory or None), machine_memory())

    def _bring(
        self, order: TaskOrder, held: HeldQuery, stores: QueryStores, cancel: CancelToken
    ) -> tuple[TaskOrder, tuple[Fetched, ...]]:
        """The order with its inputs in files of this machine, and what had to be fetched for it."""
        if not order.here or stores.inputs is None:
            return order, ()
        inputs, fetched = stores.inputs.bring(order.key, order.inputs, order.here, held.find, cancel, order.shared)
        return replace(order, inputs=inputs), fetched

    def _run_here(self, order: TaskOrder, ends: TaskEnds, cancel: CancelToken, stores: QueryStores) -> TaskReport:
        around = Surroundings(order.memory_limit, stores.spill_directory, self.guard.trust_python)
        return carry_out(order, around, stores.of_task(), ends, cancel, self._options.own)

    def _run_in_child(self, order: TaskOrder, ends: TaskEnds, cancel: CancelToken, stores: QueryStores) -> TaskReport:
        assert self._options.children is not None
        with stores.child_directories(order) as directories:
            limit = self.guard.limits.message_bytes
            report = self._options.children.run(
                ChildOrder(order, directories, self.guard.trust_python), ends, cancel, limit
            )
            stores.count(report)
            return report

    def _ends(self, ends: TaskEnds, slot: Slot) -> TaskEnds:
        """The same ends for a task that lends its slot while it waits, and whose units are checked."""
        lent = lend_while_waiting(ends, slot)
        return lent if lent.units is None else replace(lent, units=self.guard.units(lent.units))

    def _apply_rewrites(self, order: TaskOrder) -> bytes:
        return apply_rewrites(order.plan, self._rewrites, RewriteContext(order.key, dict(order.extensions)))

    def _held_query(self, query: QueryId) -> HeldQuery:
        with self._lock:
            held = self._queries.get(query)
        if held is None:
            raise ExternalError(
                f"this worker does not know query {query}. The query has ended, or its coordinator sent no heartbeat "
                "in time"
            )
        return held


def _name_refusal(error: SparkfusionError) -> SparkfusionError:
    refusal = named_refusal(error.message)
    return UserError(refusal, where=error.where, hint=TRUST) if refusal is not None else error


def _sizes(directory: Path) -> Iterator[int]:
    """The sizes of the files below a directory. Some of them may be removed meanwhile."""
    for parent, _, names in os.walk(directory):
        for name in names:
            with suppress(FileNotFoundError):
                if name != LOCK:
                    yield (Path(parent) / name).stat().st_size
