"""One query on workers. Tasks run where a slot is free; frames stay where they were made until they are fetched."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

from sparkfusion.config.memory_limits import has_memory_limit
from sparkfusion.errors import (
    ExternalError,
    LostInputError,
    QueryCancelledError,
    SparkfusionError,
    WorkerLostError,
    classify,
)
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.store import LocalFrameStore
from sparkfusion.feed.book import TaskUnits
from sparkfusion.ids import StageId, TaskKey
from sparkfusion.log_fields import about
from sparkfusion.plan.stage import ExchangeKind
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.coordinated_job import CLOSED_BY_CONSUMER, CoordinatedJob, task_memory
from sparkfusion.runner.members import Member, Members, NoWorkerError, at_once
from sparkfusion.runner.passed import AttemptRows, OtherRowsError, PassedRows
from sparkfusion.runner.pickled_functions import PickledFunctions
from sparkfusion.runner.pool import TaskPool
from sparkfusion.runner.query_state import HEAD
from sparkfusion.shared_secrets import new_secret
from sparkfusion.transport.membership import Cluster, RoutedTask
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.carry_out import TaskEnds
from sparkfusion.worker.server.fetch import InputFetcher
from sparkfusion.worker.server.frame_names import attempt_of_frame, frame_address, split_frame_address
from sparkfusion.worker.server.slot import LentUnits
from sparkfusion.worker.task import Fetched, TaskOrder, TaskReport

_STALL_SECONDS = 3.0  # of frames that do not come, although the worker does not count as lost yet
_READER_PATIENCE_SECONDS = 1.0  # a user's reader may block for ever; its thread is left behind
NOBODY = Cluster(())
_log = logging.getLogger("sparkfusion")


class WorkerJob(CoordinatedJob):
    """Launches tasks on workers. The head runs here, over frames that the workers keep.

    Args:
        cluster: its functions that choose workers for tasks, and the extensions that are sent with them.
        functions: the user's functions, if they have to be sent.
        near: there is one worker, in this process, and its files are files of this machine.
    """

    def __init__(
        self,
        job: QueryJob,
        members: Sequence[Member],
        functions: PickledFunctions,
        cluster: Cluster = NOBODY,
        *,
        near: bool = False,
    ) -> None:
        super().__init__(job, 1 + sum(member.info.slots for member in members))
        settings = job.settings
        fed = sum(declared.tasks for declared in job.feeds)
        self._fed = TaskPool(max(1, fed), f"sparkfusion-{job.query}-fed-task")
        self._extensions = cluster.extensions
        self._near = near
        self._compression = settings.compression(leaves_machine=not near)
        self._functions = functions
        self._members = Members(members, cluster.routing)
        self._members_lock = threading.Lock()
        self._made_on: dict[TaskKey, Member] = {}
        self._passed: dict[tuple[StageId, int], PassedRows] = {}
        self._tried: dict[tuple[StageId, int], set[str]] = {}
        secret = new_secret()
        budget = settings.store_memory_or_default()
        self._store = LocalFrameStore(job.query, memory_budget=budget, directory=settings.directory())
        self._patience = float(settings.integer("worker_patience_seconds"))
        self._stall = min(self._patience, _STALL_SECONDS)
        self._inputs = InputFetcher(job.query, secret, self._store, self._members.peer, self._stall)
        try:
            self._hold(members, secret)
        except BaseException:
            self.release()
            raise

    def _hold(self, members: Sequence[Member], secret: str) -> None:
        """Let every worker hold the query. A worker that refuses is left out."""

        def hold(member: Member) -> None:
            try:
                member.lease = member.channel.hold(
                    self._job.query,
                    secret,
                    self._patience,
                    functools.partial(self._on_lost, member),
                    functools.partial(self._on_late, member),
                )
            except SparkfusionError as error:
                self._on_lost(member, error)

        at_once(hold, members)
        if all(member.lost is not None for member in members):
            raise members[0].lost or ExternalError("no worker accepted the query")

    def start(self, orders: Sequence[TaskOrder]) -> None:
        for order in orders:
            if order.key.stage == HEAD:
                self.run_here(order)
                continue
            pool = self._pool if order.feed is None else self._fed
            pool.submit(functools.partial(self._run_there, order, self._token(order.key)))

    def bring(self, order: TaskOrder, cancel: CancelToken) -> tuple[TaskOrder, tuple[Fetched, ...]]:
        """Fetch the head's inputs. The head can start again as long as the consumer has none of its rows."""
        if self._near:
            return order, ()
        try:
            inputs, fetched = self._inputs.bring(order.key, order.inputs, "", lambda name: None, cancel)
        except LostInputError as error:
            for stage, number, attempt in error.lost:
                self._coordinator.report_lost_output(stage, number, attempt, unread=True)
            raise
        return replace(order, inputs=inputs), fetched

    def discard(self, key: TaskKey) -> None:
        """Remove the files of an attempt that failed or was given up. Output of a finished attempt stays until the
        query ends: a task that reported it as lost may have been wrong, while others read it."""
        with self._lock:
            token = self._tokens.get(key)
        if token is not None:
            token.cancel()
        with self._members_lock:
            member = self._made_on.pop(key, None)
        if member is not None and member.lost is None and not member.late:
            self._pool.submit(functools.partial(_discard, member, key))

    def wait_for_tasks(self) -> None:
        super().wait_for_tasks()
        self._fed.close(_READER_PATIENCE_SECONDS)

    def release(self) -> None:
        at_once(lambda lease: lease.close(), [member.lease for member in self._members if member.lease is not None])
        self._store.close()

    # ---- tasks on workers

    def _run_there(self, order: TaskOrder, token: CancelToken) -> None:
        """Run a task on a worker and report to the coordinator. Runs on a thread of the pool and must not raise."""
        task = (order.key.stage, order.key.task)
        with self._members_lock:
            passed = self._passed.setdefault(task, PassedRows(self._channel.put))
        try:
            report = self._run_on_member(order, token, passed.attempt())
        except LostInputError as error:
            for stage, number, attempt in error.lost:
                self._coordinator.report_lost_output(stage, number, attempt)
            self._coordinator.report_failure(order.key, classify(error, order.key), final=passed.final)
        except ChannelClosedError:
            self._coordinator.report_failure(order.key, QueryCancelledError(CLOSED_BY_CONSUMER), final=True)
        except BaseException as error:
            final = passed.final or isinstance(error, NoWorkerError | OtherRowsError)
            self._coordinator.report_failure(order.key, classify(error, order.key), final=final)
        else:
            self._coordinator.report_success(report)
        finally:
            with self._lock:
                self._tokens.pop(order.key, None)

    def _run_on_member(self, order: TaskOrder, token: CancelToken, rows: AttemptRows) -> TaskReport:
        task = (order.key.stage, order.key.task)
        tried = self._tried.setdefault(task, set())
        bytes_at = {} if self._near else _bytes_at(order)
        routed = RoutedTask(order.key, bytes_at)
        with self._members.place_task(routed, tried, token, order.partitions) as member:
            tried.add(member.address)
            self._check_inputs(order)
            with self._members_lock:
                self._made_on[order.key] = member
            self._coordinator.note_start(order.key, member.address)
            try:
                report = member.channel.run(self._order(order, member), self._ends(order, member, token, rows), token)
                rows.finish()
            except SparkfusionError as error:
                if member.lost is not None and (error.retryable or isinstance(error, QueryCancelledError)):
                    raise WorkerLostError(f"{member.name} is lost: {member.lost.message}") from error
                if member.late and isinstance(error, QueryCancelledError):
                    raise ExternalError(f"{member.name} is silent; the task runs on another worker") from error
                raise
        with self._members_lock:
            self._made_on.pop(order.key, None)
        if self._near:
            return report
        report = replace(report, worker=member.address)
        if order.writes is not None:
            return report
        files = tuple(replace(file, path=frame_address(member.address, file.path)) for file in report.manifest.files)
        return replace(report, manifest=replace(report.manifest, files=files))

    def _ends(self, order: TaskOrder, member: Member, token: CancelToken, rows: AttemptRows) -> TaskEnds:
        if order.feed is None:
            return TaskEnds(rows, read=rows.read)
        number = order.key.task
        units = TaskUnits(self._feeds.book, order.feed.feed, number, member.info.host, lambda: token.cancelled)
        lent = LentUnits(units, functools.partial(self._members.lend_slot, member))
        return TaskEnds(rows, lent, lambda offset, frames: self._delivery.deliver(number, offset, frames))

    def _order(self, order: TaskOrder, member: Member) -> TaskOrder:
        """The order as this worker gets it."""
        graph = self.graph()
        stage = graph.stage(order.key.stage)
        broadcast = [each for each in stage.inputs if graph.exchange(each).kind is ExchangeKind.BROADCAST]
        resumes = order.feed is not None and order.destination == "consumer"
        return replace(
            order,
            compression=self._compression,
            memory_limit=self._memory_limit(order),
            store_memory=self._job.settings.integer("store_memory_bytes"),
            first=self._delivery.first(order.key.task) if resumes else 0,
            reader=self._functions.readers.get(order.feed.feed) if order.feed is not None else None,
            recipe=self._functions.recipe,
            here=member.address,
            shared=(*broadcast, *stage.collects),
            patience=self._stall,
            extensions=self._extensions,
        )

    def _memory_limit(self, order: TaskOrder) -> int:
        """The memory limit of a task; 0 leaves it to the worker's machine."""
        chosen = has_memory_limit(self._job.settings, self._job.options)
        return task_memory(self._job, partitions=order.partitions) if chosen else 0

    def _check_inputs(self, order: TaskOrder) -> None:
        """Raise at once if frames are on a worker that is known to be lost."""
        gone = self._members.lost_addresses()
        frames = [split_frame_address(file.path) for each in order.inputs for file in each.files] if gone else []
        lost = sorted({attempt_of_frame(name) for address, name in frames if address in gone})
        if lost:
            workers = " and ".join(sorted({address for address, _ in frames if address in gone}))
            raise LostInputError(f"the task's input was on worker {workers}, which is lost", lost=lost)

    def _on_lost(self, member: Member, error: SparkfusionError) -> None:
        """A worker died, hangs, or has ended the query. Frames on it are computed again when a task needs them."""
        if self._members.lose(member, error):
            query, words = self._job.query, "query %s continues without %s: %s"
            _log.warning(words, query, member.name, error.message, extra=about(query, worker=member.address))

    def _on_late(self, member: Member, late: bool) -> None:
        """A worker's heartbeat is late: its tasks are started elsewhere, except those whose rows the consumer has."""
        for key in self._members.notice(member, late=late):
            with self._members_lock:
                passed = self._passed.get((key.stage, key.task))
            if passed is None or not passed.started:
                words = "%s is silent; %s runs on another worker"
                _log.warning(words, member.name, key, extra=about(key, worker=member.address))
                self._coordinator.report_stall(key)


def _bytes_at(order: TaskOrder) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in (file for each in order.inputs for file in each.files):
        address = split_frame_address(file.path)[0]
        found[address] = found.get(address, 0) + file.size
    return found


def _discard(member: Member, key: TaskKey) -> None:
    try:
        member.channel.discard(key)
    except SparkfusionError as error:
        where = about(key, worker=member.address)
        _log.debug("%s keeps %s until the query ends: %s", member.name, key, error.message, extra=where)
