"""One query on workers: tasks go where there is room, frames stay where they were made until somebody reads them."""

from __future__ import annotations

import functools
import logging
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import cloudpickle

from sparkfusion.errors import (
    ExternalError,
    QueryCancelledError,
    SparkfusionError,
    UserError,
    WorkerLostError,
    classify,
    first_words,
)
from sparkfusion.exchange.channel import ChannelClosedError
from sparkfusion.exchange.store import LocalStore
from sparkfusion.feed.book import FeedBook, TaskUnits
from sparkfusion.feed.dispatch import Answer
from sparkfusion.ids import StageId, TaskKey
from sparkfusion.plan.feeds import FeedId
from sparkfusion.plan.stage import ExchangeKind
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.drive import HostedTask
from sparkfusion.runner.job import DrivenJob, task_memory
from sparkfusion.runner.machine import HEAD
from sparkfusion.runner.members import Member, Members, NoWorkerError, at_once
from sparkfusion.runner.passed import AttemptRows, OtherRowsError, PassedRows
from sparkfusion.runner.pool import TaskPool
from sparkfusion.transport.base import LostInputError, TaskEnds, TaskOrder
from sparkfusion.transport.inputs import FindHere, InputFetcher
from sparkfusion.transport.membership import Cluster, RoutedTask
from sparkfusion.transport.places import made_by, place_of, split_place
from sparkfusion.worker.cancel import CancelToken
from sparkfusion.worker.task import Fetched, TaskReport, TaskSpec

_PATIENT_SECONDS = 0.2
_STALL_SECONDS = 3.0  # of frames that do not come, although the worker does not count as lost yet
_READER_PATIENCE_SECONDS = 1.0  # a user's reader may block for ever; its thread is left behind
_MEMORY_LIMIT = "datafusion.runtime.memory_limit"
NOBODY = Cluster(())
_log = logging.getLogger("sparkfusion")


@dataclass(frozen=True)
class Near:
    """A worker in this process: its files can be opened where they are.

    Attributes:
        has_functions: it has ours too; not if its tasks run in child processes.
    """

    address: str
    find: FindHere
    has_functions: bool = True


class WorkerJob(DrivenJob):
    """The driver's task host on workers. The head runs here, over frames of theirs.

    Args:
        cluster: who else has a say in where tasks run, and what travels with them.
        near: the worker, if it is the only one and in this process.
    """

    def __init__(
        self, job: QueryJob, members: Sequence[Member], cluster: Cluster = NOBODY, near: Near | None = None
    ) -> None:
        super().__init__(job, 1 + sum(member.info.slots for member in members))
        settings = job.settings
        fed = sum(declared.tasks for declared in job.feeds)
        self._fed = TaskPool(max(1, fed), f"sparkfusion-{job.query}-fed-task")
        self._extensions = cluster.extensions
        self._near = near or Near("", lambda name: None)
        self._compression = settings.compression(leaves_machine=near is None)
        self._functions = _Functions()
        if near is None:
            self._functions = _Functions.pickled(job, "workers")
        elif not near.has_functions:
            self._functions = _Functions.pickled(job, "processes that run tasks (sparkfusion.task_processes is on)")
        self._members = Members(members, cluster.routing)
        self._members_lock = threading.Lock()
        self._made_on: dict[TaskKey, Member] = {}
        self._resumes = near is None  # in this process little fails half-way, and looking at every frame costs
        self._passed: dict[tuple[StageId, int], PassedRows] = {}
        self._tried: dict[tuple[StageId, int], set[str]] = {}
        self._head_fetched: tuple[Fetched, ...] = ()
        secret = secrets.token_urlsafe(24)
        budget = settings.resolved_store_memory()
        self._store = LocalStore(job.query, memory_budget=budget, directory=settings.directory())
        self._patience = float(settings.integer("worker_patience_seconds"))
        self._stall = min(self._patience, _STALL_SECONDS)
        self._inputs = InputFetcher(job.query, secret, self._store, self._members.reader, self._stall)
        try:
            self._hold(members, secret)
        except BaseException:
            self.release()
            raise

    def _hold(self, members: Sequence[Member], secret: str) -> None:
        """Have every worker hold the query. One that does not is left out."""

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

    def start(self, tasks: Sequence[HostedTask]) -> None:
        for task in tasks:
            if task.key.stage == HEAD:
                self.run_here(task)
                continue
            pool = self._pool if task.feed is None else self._fed
            pool.submit(functools.partial(self._run_there, task, self._token(task)))

    def spec(self, task: HostedTask) -> TaskSpec:
        """Of the head, with its inputs brought here. It can begin again as long as the reader has nothing of it."""
        try:
            inputs, self._head_fetched = self._inputs.bring(
                task.key, task.inputs, self._near.address, self._near.find, self._tokens[task.key]
            )
        except LostInputError as error:
            for stage, number, attempt in error.lost:
                self._driver.lost(stage, number, attempt, unread=True)
            raise
        return super().spec(replace(task, inputs=inputs))

    def reports(self) -> list[TaskReport]:
        found = super().reports()
        return [replace(each, fetched=self._head_fetched) if each.key.stage == HEAD else each for each in found]

    def discard(self, key: TaskKey) -> None:
        """Of an attempt that failed or was given up. What a finished one made stays until the query ends: somebody who
        missed it may have been wrong, while others read it."""
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

    def _run_there(self, task: HostedTask, token: CancelToken) -> None:
        """Run a task on a worker and tell the driver; on the pool's thread, must not raise."""
        place = (task.key.stage, task.key.task)
        with self._members_lock:
            passed = self._passed.setdefault(place, PassedRows(self._channel.put, resumes=self._resumes))
        try:
            report = self._run_on_member(task, token, passed.attempt())
        except LostInputError as error:
            for stage, number, attempt in error.lost:
                self._driver.lost(stage, number, attempt)
            self._driver.failed(task.key, classify(error, task.key), final=passed.final)
        except ChannelClosedError:
            self._driver.failed(task.key, QueryCancelledError("the consumer closed the query"), final=True)
        except BaseException as error:
            final = passed.final or isinstance(error, NoWorkerError | OtherRowsError)
            self._driver.failed(task.key, classify(error, task.key), final=final)
        else:
            self._driver.succeeded(report)
        finally:
            with self._lock:
                self._tokens.pop(task.key, None)

    def _run_on_member(self, task: HostedTask, token: CancelToken, rows: AttemptRows) -> TaskReport:
        place = (task.key.stage, task.key.task)
        tried = self._tried.setdefault(place, set())
        with self._members.placed(RoutedTask(task.key, _bytes_at(task)), tried, token) as member:
            tried.add(member.address)
            self._check_inputs(task)
            with self._members_lock:
                self._made_on[task.key] = member
            try:
                report = member.channel.run(self._order(task, member), self._ends(task, member, token, rows), token)
                rows.finish()
            except SparkfusionError as error:
                if member.lost is not None and (error.retryable or isinstance(error, QueryCancelledError)):
                    raise WorkerLostError(f"worker {member.address} is lost: {member.lost.message}") from error
                if member.late and isinstance(error, QueryCancelledError):
                    raise ExternalError(
                        f"worker {member.address} is silent; the task runs on another worker"
                    ) from error
                raise
        with self._members_lock:
            self._made_on.pop(task.key, None)
        if self._job.writes is not None and task.streams:
            return report
        files = tuple(replace(file, path=place_of(member.address, file.path)) for file in report.manifest.files)
        return replace(report, manifest=replace(report.manifest, files=files))

    def _ends(self, task: HostedTask, member: Member, token: CancelToken, rows: AttemptRows) -> TaskEnds:
        if task.feed is None:
            return TaskEnds(rows)
        number = task.key.task
        units = _MemberUnits(self._feeds.book, task.feed, number, self._members, member, token)
        return TaskEnds(rows, units, lambda offset, frames: self._delivery.deliver(number, offset, frames))

    def _order(self, task: HostedTask, member: Member) -> TaskOrder:
        writes = self._job.writes if task.streams else None
        settings = self._job.settings
        graph = self._job.graph
        inputs = graph.stage(task.key.stage).inputs
        return TaskOrder(
            spec=replace(super().spec(task), memory_limit=self._memory_limit(), spill_directory=""),
            here=member.address,
            destination="reader" if task.streams and writes is None else "store",
            writes=writes,
            compression=self._compression,
            shared=tuple(each for each in inputs if graph.exchange(each).kind is ExchangeKind.BROADCAST),
            store_memory=settings.integer("store_memory_bytes"),
            patience=self._stall,
            first=self._delivery.first(task.key.task) if task.feed is not None and task.streams else 0,
            reader=self._functions.readers.get(task.feed) if task.feed is not None else None,
            recipe=self._functions.recipe,
            extensions=self._extensions,
        )

    def _memory_limit(self) -> int:
        """What the user set for a task; 0 leaves it to the worker's machine."""
        chosen = self._job.settings.integer("task_memory_bytes")
        limited = self._job.options.get(_MEMORY_LIMIT, "unlimited") != "unlimited"
        return task_memory(self._job, alone=False) if chosen or limited else 0

    def _check_inputs(self, task: HostedTask) -> None:
        """Frames on a worker that is known to be gone need not be asked for."""
        gone = self._members.gone()
        places = [split_place(file.path) for each in task.inputs for file in each.files] if gone else []
        lost = sorted({made_by(name) for address, name in places if address in gone})
        if lost:
            raise LostInputError(f"frames that the task reads are on a lost worker ({', '.join(gone)})", lost=lost)

    def _on_lost(self, member: Member, error: SparkfusionError) -> None:
        """A worker died, hangs, or has ended the query. Frames on it are made again when somebody misses them."""
        if self._members.lose(member, error):
            _log.warning("query %s continues without worker %s: %s", self._job.query, member.address, error.message)

    def _on_late(self, member: Member, late: bool) -> None:
        """A worker is late with its word: its tasks begin elsewhere, except those whose rows the reader has."""
        for key in self._members.notice(member, late=late):
            with self._members_lock:
                passed = self._passed.get((key.stage, key.task))
            if passed is None or not passed.begun:
                _log.warning("worker %s is silent; %s runs on another worker", member.address, key)
                self._driver.stalled(key)


class _MemberUnits:
    """Units of a task on a worker. While it waits for them, others may have its slot there."""

    def __init__(
        self, book: FeedBook, feed: FeedId, task: int, members: Members, member: Member, cancel: CancelToken
    ) -> None:
        self._units = TaskUnits(book, feed, task)
        self._dispatcher = book[feed]
        self._task = task
        self._members = members
        self._member = member
        self._cancel = cancel

    def take(self, offset: int) -> bytes | None:
        host = self._member.info.host
        with self._members.lent(self._member):
            while not self._cancel.cancelled:
                answer = self._dispatcher.take(self._task, offset, host=host, patience=_PATIENT_SECONDS)
                if answer is Answer.END:
                    return None
                if not isinstance(answer, Answer):
                    return answer.data
        raise QueryCancelledError("the task was cancelled")

    def failed(self, offset: int) -> None:
        self._units.failed(offset)

    def enough(self) -> None:
        self._units.enough()


def begun(job: WorkerJob) -> WorkerJob:
    """The job, under way; whatever keeps it from beginning, Ctrl-C too, leaves nothing of it."""
    try:
        job.begin()
    except BaseException:
        job.cancel("the query was interrupted before it started")
        job.end(QueryCancelledError("the query was interrupted before it started"))
        raise
    return job


def _bytes_at(task: HostedTask) -> dict[str, int]:
    found: dict[str, int] = {}
    for file in (file for each in task.inputs for file in each.files):
        address = split_place(file.path)[0]
        found[address] = found.get(address, 0) + file.size
    return found


def _discard(member: Member, key: TaskKey) -> None:
    try:
        member.channel.discard(key)
    except SparkfusionError as error:
        _log.debug("%s keeps %s until the query ends: %s", member.address, key, error.message)


@dataclass(frozen=True)
class _Functions:
    """The user's functions as they travel with tasks."""

    recipe: bytes | None = None
    readers: Mapping[FeedId, bytes | None] = field(default_factory=dict)

    @classmethod
    def pickled(cls, job: QueryJob, whither: str) -> _Functions:
        recipe = _pickled(job.recipe(), "what makes the session's object stores", whither)
        readers = {
            each.feed: _pickled(each.reader, f"the reader of table {each.table!r}", whither) for each in job.feeds
        }
        return cls(recipe, readers)


def _pickled(value: object, what: str, whither: str) -> bytes | None:
    if value is None:
        return None
    try:
        data: bytes = cloudpickle.dumps(value)
    except Exception as error:
        raise UserError(f"{what} cannot be sent to {whither}: {first_words(error)}") from error
    return data
