"""The coordinator's logic without I/O: (state, event) → (state, commands).

Nothing here waits, runs or writes, so tests of retries, commits and adaptive decisions only have to pass in events.
`coordinate` carries the commands out and reports what happened. The head counts as stage 0 with one task.

Promises: every task's output is committed once, by the attempt that is wanted, and others are discarded; a consumer
starts only when all its inputs are committed; after an outcome no task is started.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparkfusion.errors import ExternalError, QueryCancelledError, SparkfusionError, TaskCrashError, WorkerLostError
from sparkfusion.exchange.manifest import Manifest
from sparkfusion.ids import StageId, TaskKey
from sparkfusion.plan.isolate import Partitions
from sparkfusion.runner.empty_decisions import StageSkip, skip_empty_stages
from sparkfusion.runner.join_decisions import JoinDecision, decide_joins, find_waiting_stages
from sparkfusion.runner.key_set_decisions import KeySetDecision, decide_key_sets
from sparkfusion.runner.query_state import HEAD, QueryOutcome, QueryState, StageState, TaskState
from sparkfusion.runner.skew_decisions import SkewDecision, begin_stage
from sparkfusion.runner.swap_decisions import swap_build_sides

MOST_LOSSES = 8
MOST_CRASHES = 2
MOST_MOVES = 2
_SUSPECT_HINT = (
    "look into the workers' logs; if they were lost for another reason, run the query again, "
    "or raise sparkfusion.max_worker_losses"
)

# ---- events


@dataclass(frozen=True)
class Started:
    """The query begins."""


@dataclass(frozen=True)
class TaskSucceeded:
    key: TaskKey
    manifest: Manifest


@dataclass(frozen=True)
class TaskErrored:
    """An attempt failed. `final`: no attempt may follow, whatever the error is: rows of this one have reached the
    consumer, or Spark has retried often enough."""

    key: TaskKey
    error: SparkfusionError
    final: bool = False


@dataclass(frozen=True)
class TaskStalled:
    """The worker of an attempt does not answer. It may answer again, but another worker could start the task
    meanwhile."""

    key: TaskKey


@dataclass(frozen=True)
class OutputLost:
    """Committed frames of a task are lost, with the worker that held them. Several consumers may report that.

    `unread`: the head reported it, before it gave any row to the consumer. It has to start again.
    """

    stage: StageId
    task: int
    attempt: int
    unread: bool = False


@dataclass(frozen=True)
class CancelRequested:
    reason: str = "the query was cancelled"


@dataclass(frozen=True)
class Aborted:
    """Something failed that no retry of a task can repair, such as the provider of a feed."""

    error: SparkfusionError


MachineEvent = Started | TaskSucceeded | TaskErrored | TaskStalled | OutputLost | Aborted | CancelRequested

# ---- commands


@dataclass(frozen=True)
class Launch:
    key: TaskKey
    partitions: Partitions


@dataclass(frozen=True)
class RunTasks:
    """Start these tasks of one stage. For the head there is one launch, with stage 0."""

    stage: StageId
    launches: tuple[Launch, ...]
    first: bool


@dataclass(frozen=True)
class Discard:
    """Stop this attempt if it is still running, and remove what it wrote. Its output is never read."""

    key: TaskKey


@dataclass(frozen=True)
class End:
    """The query is over: stop the running tasks and tell the consumer."""

    outcome: QueryOutcome
    error: SparkfusionError | None = None


Command = RunTasks | Discard | JoinDecision | KeySetDecision | SkewDecision | StageSkip | End

Step = tuple[QueryState, tuple[Command, ...]]


def transition(state: QueryState, event: MachineEvent) -> Step:
    """What follows from an event. All changes of a query's state go through here. After an outcome only late output is
    discarded."""
    if state.outcome is not None:
        return state, (Discard(event.key),) if isinstance(event, TaskSucceeded) else ()
    if isinstance(event, Started):
        return _launch_ready(state)
    if isinstance(event, TaskSucceeded):
        return _on_success(state, event)
    if isinstance(event, TaskErrored):
        return _on_error(state, event)
    if isinstance(event, TaskStalled):
        return _on_stalled(state, event)
    if isinstance(event, OutputLost):
        return _on_lost(state, event)
    if isinstance(event, Aborted):
        return replace(state, outcome="failed"), (End("failed", event.error),)
    ended = replace(state, outcome="cancelled")
    return ended, (End("cancelled", QueryCancelledError(event.reason)),)


def _on_success(state: QueryState, event: TaskSucceeded) -> Step:
    task = _task_of(state, event.key)
    if task is None or task.manifest is not None or event.key.attempt != task.attempt:
        return state, (Discard(event.key),)
    state = _with_task(state, event.key, replace(task, running=False, manifest=event.manifest))
    last_stream = state.graph.head.streams and event.key.stage == _streaming_stage(state)
    if event.key.stage == HEAD or (last_stream and state.stage(event.key.stage).done):
        return replace(state, outcome="finished"), (End("finished"),)
    return _launch_ready(state) if state.stage(event.key.stage).done else (state, ())


def _on_error(state: QueryState, event: TaskErrored) -> Step:
    task = _task_of(state, event.key)
    if task is None or event.key.attempt != task.attempt or task.manifest is not None:
        return state, (Discard(event.key),)
    if not event.error.retryable or event.final or task.failures >= state.policy.retries:
        return _fail(state, event.key, event.error)
    crashes = task.crashes + isinstance(event.error, TaskCrashError)
    if crashes >= MOST_CRASHES:
        deadly = TaskCrashError(_deadly(event.error), where=event.key, hint=event.error.hint)
        return _fail(state, event.key, deadly)
    losses = task.worker_losses + isinstance(event.error, WorkerLostError)
    if losses >= state.policy.worker_losses and losses > task.worker_losses:
        suspect = WorkerLostError(_suspect(event.error, losses), where=event.key, hint=_SUSPECT_HINT)
        return _fail(state, event.key, suspect)
    again = replace(
        task,
        attempt=task.attempt + 1,
        running=False,
        failures=task.failures + 1,
        crashes=crashes,
        worker_losses=losses,
    )
    state, commands = _launch_ready(_with_task(state, event.key, again))
    return state, (Discard(event.key), *commands)


def _on_stalled(state: QueryState, event: TaskStalled) -> Step:
    """Give up the attempt and start another. This does not count as a failure of the task. After some moves the task
    waits for its worker."""
    task = _task_of(state, event.key)
    if task is None or not task.running or task.attempt != event.key.attempt or task.moves >= MOST_MOVES:
        return state, ()
    again = replace(task, attempt=task.attempt + 1, running=False, moves=task.moves + 1)
    state, commands = _launch_ready(_with_task(state, event.key, again))
    return state, (Discard(event.key), *commands)


def _fail(state: QueryState, key: TaskKey, error: SparkfusionError) -> Step:
    return replace(state, outcome="failed"), (Discard(key), End("failed", error))


def _deadly(last: SparkfusionError) -> str:
    return f"{last.message}. The task is not retried after {MOST_CRASHES} such attempts"


def _suspect(last: SparkfusionError, losses: int) -> str:
    return f"{losses} workers were lost while they ran this task, so it is not started again: {last.message}"


def _on_lost(state: QueryState, event: OutputLost) -> Step:
    """Recompute lost output. If its rows may differ this time, also recompute everything that was computed from it.

    See docs/traps.md#retries-of-non-deterministic-stages.
    """
    key = TaskKey(state.query, event.stage, event.task, event.attempt)
    task = _task_of(state, key)
    if task is None or task.manifest is None or task.attempt != event.attempt:
        return state, ()
    if event.attempt >= MOST_LOSSES:
        error = ExternalError(
            "this task's output was lost repeatedly; sparkfusion gives up",
            where=key,
            hint="look into the logs of the workers that were lost, and run the query again",
        )
        return replace(state, outcome="failed"), (End("failed", error),)
    lost = {event.stage}
    if not state.graph.stage(event.stage).deterministic:
        for stage in state.graph.stages:
            if any(state.graph.exchange(e).producer in lost for e in stage.inputs):
                lost.add(stage.id)
    if not event.unread and _consumer_has_rows_of(state, lost):
        error = ExternalError(
            "a worker was lost after some of its rows had been returned to you", hint="run the query again"
        )
        return replace(state, outcome="failed"), (End("failed", error),)
    commands: list[Command] = []
    for stage_id in sorted(lost):
        only = event.task if stage_id == event.stage else None
        for index, task in enumerate(state.stage(stage_id).tasks):
            if (only is not None and index != only) or (task.manifest is None and not task.running):
                continue
            key = TaskKey(state.query, stage_id, index, task.attempt)
            commands.append(Discard(key))
            state = _with_task(state, key, replace(task, attempt=task.attempt + 1, running=False, manifest=None))
    if event.unread and state.stage(HEAD).started:
        (head,) = state.stage(HEAD).tasks
        again = replace(head, attempt=head.attempt + 1, running=False, manifest=None)
        state = _with_task(state, TaskKey(state.query, HEAD, 0), again)
    state, launched = _launch_ready(state)
    return state, (*commands, *launched)


def _consumer_has_rows_of(state: QueryState, lost: set[StageId]) -> bool:
    """Whether rows that were computed from lost output may have reached the consumer, where they cannot be taken
    back."""
    if state.graph.head.streams:
        streaming = _streaming_stage(state)
        return streaming in lost and state.stage(streaming).started
    return state.stage(HEAD).started and any(state.graph.exchange(e).producer in lost for e in state.graph.head.inputs)


def _launch_ready(state: QueryState) -> Step:
    """Start every task that is needed, is not running, and whose inputs are complete."""
    state, key_sets = decide_key_sets(state)
    state, skips = skip_empty_stages(state)
    state, decisions = decide_joins(state)
    commands: list[Command] = [*key_sets, *skips, *(Discard(key) for each in skips for key in each.running), *decisions]
    waiting = find_waiting_stages(state)
    for stage in state.graph.stages:
        if stage.id in waiting or not state.inputs_done(stage.inputs):
            continue
        first = not state.stage(stage.id).started
        if first:
            state, swaps = swap_build_sides(state, state.graph.stage(stage.id))
            state, skew = begin_stage(state, state.graph.stage(stage.id))
            commands += [*swaps, *skew]
        state, launches = _launch_idle(state, stage.id)
        if launches:
            commands.append(RunTasks(stage.id, launches, first))
    if not state.graph.head.streams and state.inputs_done(state.graph.head.inputs):
        first = not state.stage(HEAD).started
        if first:
            state = replace(state, stages={**state.stages, HEAD: StageState.of(((0,),))})
        state, launches = _launch_idle(state, HEAD)
        if launches:
            commands.append(RunTasks(HEAD, launches, first))
    return state, tuple(commands)


def _launch_idle(state: QueryState, stage_id: StageId) -> tuple[QueryState, tuple[Launch, ...]]:
    stage = state.stage(stage_id)
    if not stage.idle:
        return state, ()
    launches = tuple(
        Launch(TaskKey(state.query, stage_id, index, task.attempt), stage.layout[index])
        for index, task in enumerate(stage.tasks)
        if task.is_idle
    )
    return replace(state, stages={**state.stages, stage_id: stage.with_all_running()}), launches


def _streaming_stage(state: QueryState) -> StageId:
    return state.graph.exchange(state.graph.head.inputs[0]).producer


def _task_of(state: QueryState, key: TaskKey) -> TaskState | None:
    tasks = state.stage(key.stage).tasks
    return tasks[key.task] if key.task < len(tasks) else None


def _with_task(state: QueryState, key: TaskKey, task: TaskState) -> QueryState:
    stage = state.stage(key.stage).with_task(key.task, task)
    return replace(state, stages={**state.stages, key.stage: stage})
