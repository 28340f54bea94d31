"""The coordinator of one query: gives the machine every event, and carries out its commands through a task launcher."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sparkfusion.errors import InternalError, SparkfusionError, classify
from sparkfusion.ids import ExchangeId, StageId, TaskKey
from sparkfusion.observe.events import (
    JoinDecided,
    KeySetDecided,
    SkewDecided,
    StageFinished,
    StageSkipped,
    StageStarted,
    TaskFailed,
    TaskFinished,
    TaskRunning,
    TaskStarted,
)
from sparkfusion.plan.isolate import isolate
from sparkfusion.plan.sources import groups_read
from sparkfusion.plan.stage import ExchangeKind, StageGraph
from sparkfusion.plan.wire import decode
from sparkfusion.runner.base import QueryJob
from sparkfusion.runner.empty_decisions import StageSkip
from sparkfusion.runner.job_feeds import feed_input
from sparkfusion.runner.join_decisions import JoinDecision
from sparkfusion.runner.key_set_decisions import KeySetDecision
from sparkfusion.runner.machine import (
    Aborted,
    CancelRequested,
    Command,
    Discard,
    End,
    Launch,
    MachineEvent,
    OutputLost,
    RunTasks,
    Started,
    TaskErrored,
    TaskStalled,
    TaskSucceeded,
    transition,
)
from sparkfusion.runner.query_state import HEAD, Policy, Portion, QueryState
from sparkfusion.runner.skew_decisions import SkewDecision
from sparkfusion.runner.task_times import TaskTimes
from sparkfusion.worker.task import TaskInput, TaskOrder, TaskReport

_DEFECTS = (AssertionError, AttributeError, LookupError, NameError, RuntimeError, TypeError)
_DEFECT_HINT = "this is a defect of sparkfusion: run the query again, and report the defect with its stack trace"


@dataclass(frozen=True)
class _TaskReported(TaskSucceeded):
    """A success with its whole report, which counts if the attempt is the one that is committed."""

    report: TaskReport


class TaskLauncher(Protocol):
    """Starts tasks where they run: the only part that differs between runners. Called by the coordinator's thread only.

    For each started task the launcher calls `report_success` or `report_failure` of the coordinator once, from any
    thread.
    """

    def start(self, orders: Sequence[TaskOrder]) -> None:
        """Run tasks of one stage; returns at once."""
        ...

    def discard(self, key: TaskKey) -> None: ...

    def end(self, error: SparkfusionError | None) -> None:
        """Stop everything, tell the consumer, clean up. Called exactly once, last."""
        ...


class QueryCoordinator:
    """Owns the state of one query. All transitions happen on one thread; other threads only post events."""

    def __init__(self, job: QueryJob, policy: Policy) -> None:
        self._job = job
        self._state = QueryState(job.query, job.graph, policy)
        self._inbox: queue.SimpleQueue[MachineEvent] = queue.SimpleQueue()
        self._reports: dict[tuple[StageId, int], TaskReport] = {}
        self._finished_stages: set[StageId] = set()
        self._lock = threading.Lock()
        self._announced: set[TaskKey] = set()
        self._times = TaskTimes(time.time)
        self._feeds = {each.feed: feed_input(each) for each in job.feeds}

    def run(self, launcher: TaskLauncher) -> None:
        """Run the query to its end, on the calling thread."""
        error: SparkfusionError | None = InternalError("the query's coordinator stopped unexpectedly")
        try:
            self._inbox.put(Started())
            error = self._loop(launcher)
        except Exception as raised:  # a defect of ours must reach the consumer, not hang it
            error = _classify_here(raised)
        finally:
            launcher.end(error)

    def announce(self, report: TaskReport) -> None:
        """Tell subscribers that a task is done, once; its output may not be readable yet."""
        with self._lock:
            if report.key in self._announced:
                return
            self._announced.add(report.key)
        size, failed = report.manifest.bytes, report.earlier_attempts
        started_at = self._times.take_start(report)
        self._job.emit(
            TaskFinished(
                self._job.query, report.key, report.rows, size, report.seconds, failed, report.worker, started_at
            )
        )

    def note_start(self, key: TaskKey, worker: str) -> None:
        """An attempt has a slot and starts to run now, on this worker; empty for the coordinator's process. Launchers
        that do not know it need not call this. Any thread."""
        self._times.note_start(key, worker)
        self._job.emit(TaskRunning(self._job.query, key, worker))

    def report_success(self, report: TaskReport) -> None:
        self.announce(report)
        self._inbox.put(_TaskReported(report.key, report.manifest, report))

    def report_failure(self, key: TaskKey, error: SparkfusionError, *, final: bool) -> None:
        self._inbox.put(TaskErrored(key, error, final))

    def report_stall(self, key: TaskKey) -> None:
        self._inbox.put(TaskStalled(key))

    def report_lost_output(self, stage: StageId, task: int, attempt: int, *, unread: bool = False) -> None:
        self._inbox.put(OutputLost(stage, task, attempt, unread))

    def abort(self, error: SparkfusionError) -> None:
        self._inbox.put(Aborted(error))

    def cancel(self, reason: str) -> None:
        self._inbox.put(CancelRequested(reason))

    @property
    def graph(self) -> StageGraph:
        """The stages as they run, after what was decided so far. Any thread may ask."""
        return self._state.graph

    def reports(self) -> list[TaskReport]:
        """What the committed attempts reported so far, by stage and task. Any thread may ask."""
        with self._lock:
            reports = list(self._reports.values())
        return sorted(reports, key=lambda report: (report.key.stage, report.key.task))

    def _loop(self, launcher: TaskLauncher) -> SparkfusionError | None:
        while True:
            event = self._inbox.get()
            self._state, commands = transition(self._state, event)
            if isinstance(event, _TaskReported) and Discard(event.key) not in commands:
                with self._lock:
                    self._reports[(event.key.stage, event.key.task)] = event.report
            self._tell(event)
            for command in commands:
                if isinstance(command, End):
                    return command.error
                self._carry_out(command, launcher)

    def _carry_out(self, command: Command, launcher: TaskLauncher) -> None:
        if isinstance(command, Discard):
            launcher.discard(command.key)
        elif isinstance(command, JoinDecision):
            decided = JoinDecided(self._job.query, command.stage, command.reason, command.absorbed)
            self._job.emit(decided)
        elif isinstance(command, KeySetDecision):
            self._job.emit(KeySetDecided(self._job.query, command.stage, command.reason, command.used))
        elif isinstance(command, SkewDecision):
            self._job.emit(SkewDecided(self._job.query, command.stage, command.reason, command.split))
        elif isinstance(command, StageSkip):
            self._job.emit(StageSkipped(self._job.query, command.stage, command.reason))
        elif isinstance(command, RunTasks):
            if command.first:
                self._job.emit(StageStarted(self._job.query, command.stage, len(command.launches)))
            launcher.start([self._order(launch) for launch in command.launches])

    def _order(self, launch: Launch) -> TaskOrder:
        """The part of a task's order that is the same on every runner. The runner adds the rest."""
        job, graph = self._job, self.graph
        self._times.note_order(launch.key)
        job.emit(TaskStarted(job.query, launch.key))
        if launch.key.stage == HEAD:
            plan = graph.head.plan or b""
            inputs = self._inputs(groups_read(decode(plan)))
            return TaskOrder(launch.key, plan, inputs, options=job.options, destination="consumer")
        stage = graph.stage(launch.key.stage)
        apart = self._state.stage(stage.id).apart
        isolated = isolate(stage, launch.partitions, apart=apart)
        last = feeds_consumer(graph, stage.id)
        exchange = graph.exchange(stage.output)
        shuffles = exchange.kind is ExchangeKind.SHUFFLE
        return TaskOrder(
            key=launch.key,
            plan=isolated.plan,
            inputs=self._inputs(isolated.groups, self._state.stage(stage.id).portion_of(launch.key.task)),
            outputs=len(launch.partitions) if apart and not shuffles else exchange.partitions,
            options=job.options,
            destination="consumer" if last and job.writes is None else "store",
            writes=job.writes if last else None,
            feed=self._feeds[isolated.feed] if isolated.feed is not None else None,
            partitions=stage.partitions_per_task if stage.whole else len(launch.partitions) if apart else 1,
        )

    def _inputs(
        self, groups: Sequence[tuple[ExchangeId, int]], portion: Portion | None = None
    ) -> tuple[TaskInput, ...]:
        files_of = self._state.files
        return tuple(TaskInput(exchange, group, files_of(exchange, group, portion)) for exchange, group in groups)

    def _tell(self, event: MachineEvent) -> None:
        if isinstance(event, TaskErrored | TaskSucceeded) and self._state.stage(event.key.stage).skipped:
            return  # a task that was stopped, or finished although nobody needs it any more
        if isinstance(event, TaskErrored):
            retried = self._state.outcome is None
            worker, started_at = self._times.take(event.key)
            self._job.emit(TaskFailed(self._job.query, event.key, event.error.message, retried, worker, started_at))
        elif isinstance(event, TaskSucceeded) and event.key.stage not in self._finished_stages:
            stage = self._state.stage(event.key.stage)
            if stage.done:
                self._finished_stages.add(event.key.stage)
                reports = [report for report in self._reports.values() if report.key.stage == event.key.stage]
                rows, size = sum(r.rows for r in reports), sum(r.manifest.bytes for r in reports)
                self._job.emit(StageFinished(self._job.query, event.key.stage, rows, size))


def _classify_here(error: Exception) -> SparkfusionError:
    """An error of the coordinator itself. No function of the user runs on its thread, so a Python error is a defect."""
    if isinstance(error, _DEFECTS):
        return InternalError(f"the query's coordinator failed: {type(error).__name__}: {error}", hint=_DEFECT_HINT)
    return classify(error)


def feeds_consumer(graph: StageGraph, stage: StageId) -> bool:
    """Whether the stage's rows go straight to the query's consumer."""
    return graph.head.streams and graph.exchange(graph.head.inputs[0]).producer == stage
