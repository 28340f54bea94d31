"""The coordinator's logic, fed with events: nothing runs here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkfusion.errors import (
    ExternalError,
    InternalError,
    ResourceError,
    SparkfusionError,
    TaskCrashError,
    UserError,
    WorkerLostError,
)
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.ids import TaskKey
from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, Stage, StageGraph
from sparkfusion.runner.machine import (
    MOST_MOVES,
    CancelRequested,
    Command,
    Discard,
    End,
    MachineEvent,
    OutputLost,
    RunTasks,
    Started,
    TaskErrored,
    TaskStalled,
    TaskSucceeded,
    transition,
)
from sparkfusion.runner.query_state import HEAD, Policy, QueryState

GATHER, SHUFFLE = ExchangeKind.GATHER, ExchangeKind.SHUFFLE


def stage(number: int, *inputs: int, tasks: int = 1, deterministic: bool = True, mergeable: bool = False) -> Stage:
    return Stage(number, b"", tasks, inputs, number, mergeable, deterministic)


def graph_of(*stages: Stage, shuffles: tuple[int, ...] = (), partitions: int = 1, streams: bool = False) -> StageGraph:
    """Stages whose outputs have their numbers; the last one feeds the head."""
    exchanges = tuple(
        Exchange(
            each.id, SHUFFLE if each.id in shuffles else GATHER, each.id, partitions if each.id in shuffles else 1, ()
        )
        for each in stages
    )
    return StageGraph(stages, exchanges, Head((stages[-1].id,), None if streams else b"plan"))


class Query:
    """A query under test: tells it events, remembers the state, and returns the commands."""

    def __init__(self, graph: StageGraph, policy: Policy | None = None) -> None:
        self.state = QueryState("q", graph, policy or Policy())

    def tell(self, event: MachineEvent) -> tuple[Command, ...]:
        self.state, commands = transition(self.state, event)
        return commands

    def start(self) -> list[TaskKey]:
        return launched(self.tell(Started()))

    def succeed(
        self, number: int, task: int = 0, attempt: int = 0, files: tuple[FrameFile, ...] = ()
    ) -> tuple[Command, ...]:
        key = TaskKey("q", number, task, attempt)
        return self.tell(TaskSucceeded(key, Manifest(key, files)))

    def fail(
        self, number: int, error: SparkfusionError, task: int = 0, attempt: int = 0, *, final: bool = False
    ) -> tuple[Command, ...]:
        return self.tell(TaskErrored(TaskKey("q", number, task, attempt), error, final))


def launched(commands: tuple[Command, ...]) -> list[TaskKey]:
    return [launch.key for command in commands if isinstance(command, RunTasks) for launch in command.launches]


def discarded(commands: tuple[Command, ...]) -> list[TaskKey]:
    return [command.key for command in commands if isinstance(command, Discard)]


def key(number: int, task: int = 0, attempt: int = 0) -> TaskKey:
    return TaskKey("q", number, task, attempt)


# ---- starting


def test_independent_stages_start_together() -> None:
    query = Query(graph_of(stage(1, tasks=2), stage(2), stage(3, 1, 2)))
    assert query.start() == [key(1, 0), key(1, 1), key(2)]


def test_a_consumer_starts_when_every_task_of_every_input_is_done() -> None:
    query = Query(graph_of(stage(1, tasks=2), stage(2), stage(3, 1, 2)))
    query.start()
    assert launched(query.succeed(1, task=1)) == []
    assert launched(query.succeed(2)) == []
    assert launched(query.succeed(1, task=0)) == [key(3)]


def test_the_head_runs_last_and_ends_the_query() -> None:
    query = Query(graph_of(stage(1)))
    query.start()
    assert launched(query.succeed(1)) == [key(HEAD)]
    assert query.succeed(HEAD) == (End("finished"),)
    assert query.state.outcome == "finished"


def test_a_streaming_head_ends_with_the_last_task_of_its_stage() -> None:
    query = Query(graph_of(stage(1), stage(2, 1, tasks=2), streams=True))
    query.start()
    assert launched(query.succeed(1)) == [key(2, 0), key(2, 1)]
    assert query.succeed(2, task=1) == ()
    assert query.succeed(2, task=0) == (End("finished"),)


def test_only_the_first_launch_of_a_stage_is_called_first() -> None:
    query = Query(graph_of(stage(1)))
    (first,) = query.tell(Started())
    again = [command for command in query.fail(1, ExternalError("lost")) if isinstance(command, RunTasks)]
    assert isinstance(first, RunTasks)
    assert first.first
    assert [command.first for command in again] == [False]


# ---- failing


@pytest.mark.parametrize("error", [ExternalError("connection reset"), InternalError("defect")])
def test_external_and_internal_errors_are_tried_again(error: SparkfusionError) -> None:
    query = Query(graph_of(stage(1, tasks=2)))
    query.start()
    commands = query.fail(1, error, task=1)
    assert discarded(commands) == [key(1, 1, 0)]
    assert launched(commands) == [key(1, 1, 1)]
    assert query.state.outcome is None


@pytest.mark.parametrize("error", [UserError("division by zero"), ResourceError("out of memory")])
def test_user_and_resource_errors_are_not_tried_again(error: SparkfusionError) -> None:
    query = Query(graph_of(stage(1, tasks=2)))
    query.start()
    assert query.fail(1, error) == (Discard(key(1)), End("failed", error))
    assert query.state.outcome == "failed"


def test_retries_run_out() -> None:
    query = Query(graph_of(stage(1)), Policy(retries=2))
    query.start()
    assert launched(query.fail(1, ExternalError("one"), attempt=0)) == [key(1, 0, 1)]
    assert launched(query.fail(1, ExternalError("two"), attempt=1)) == [key(1, 0, 2)]
    last = ExternalError("three")
    assert query.fail(1, last, attempt=2) == (Discard(key(1, 0, 2)), End("failed", last))


def test_retries_are_counted_for_each_task() -> None:
    query = Query(graph_of(stage(1, tasks=2)), Policy(retries=1))
    query.start()
    query.fail(1, ExternalError("lost"), task=0)
    assert launched(query.fail(1, ExternalError("lost"), task=1)) == [key(1, 1, 1)]


def test_no_retries_when_none_are_allowed() -> None:
    query = Query(graph_of(stage(1)), Policy(retries=0))
    query.start()
    query.fail(1, ExternalError("lost"))
    assert query.state.outcome == "failed"


def test_rows_that_reached_the_reader_are_not_made_again() -> None:
    query = Query(graph_of(stage(1, tasks=2), streams=True))
    query.start()
    error = ExternalError("lost")
    assert query.fail(1, error, final=True) == (Discard(key(1)), End("failed", error))


def test_a_streaming_task_without_rows_yet_is_tried_again() -> None:
    query = Query(graph_of(stage(1, tasks=2), streams=True))
    query.start()
    assert launched(query.fail(1, ExternalError("lost"), final=False)) == [key(1, 0, 1)]


def test_the_head_is_tried_again() -> None:
    query = Query(graph_of(stage(1)))
    query.start()
    query.succeed(1)
    assert launched(query.fail(HEAD, ExternalError("lost"))) == [key(HEAD, 0, 1)]
    assert query.succeed(HEAD, attempt=1) == (End("finished"),)


# ---- attempts that come late


def test_a_second_success_of_a_task_is_discarded() -> None:
    query = Query(graph_of(stage(1, tasks=2)))
    query.start()
    query.succeed(1)
    committed = query.state.stage(1).tasks[0].manifest
    assert query.succeed(1) == (Discard(key(1)),)
    assert query.state.stage(1).tasks[0].manifest is committed


def test_a_stale_failure_changes_nothing() -> None:
    query = Query(graph_of(stage(1)))
    query.start()
    query.fail(1, ExternalError("lost"))
    before = query.state
    assert query.fail(1, UserError("late"), attempt=0) == (Discard(key(1, 0, 0)),)
    assert query.state == before


def test_a_failure_after_the_commit_changes_nothing() -> None:
    query = Query(graph_of(stage(1, tasks=2)))
    query.start()
    query.succeed(1)
    assert query.fail(1, UserError("late")) == (Discard(key(1)),)
    assert query.state.outcome is None


def test_a_stale_success_of_a_non_deterministic_stage_is_discarded() -> None:
    query = Query(graph_of(stage(1, deterministic=False)))
    query.start()
    query.fail(1, ExternalError("lost"))
    assert query.succeed(1, attempt=0) == (Discard(key(1, 0, 0)),)
    assert launched(query.succeed(1, attempt=1)) == [key(HEAD)]


def test_a_success_of_an_unknown_task_is_discarded() -> None:
    query = Query(graph_of(stage(1)))
    query.start()
    assert query.succeed(1, task=7) == (Discard(key(1, 7)),)
    assert query.succeed(1, attempt=3) == (Discard(key(1, 0, 3)),)


# ---- ending


def test_cancel_ends_the_query() -> None:
    query = Query(graph_of(stage(1)))
    query.start()
    (end,) = query.tell(CancelRequested("Ctrl-C"))
    assert isinstance(end, End)
    assert end.outcome == "cancelled"
    assert end.error is not None
    assert end.error.message == "Ctrl-C"


@pytest.mark.parametrize("outcome", ["finished", "failed", "cancelled"])
def test_after_the_outcome_late_output_is_discarded_and_the_rest_ignored(outcome: str) -> None:
    query = Query(graph_of(stage(1, tasks=2)))
    query.start()
    query.state = replace(query.state, outcome=outcome)  # type: ignore[arg-type]
    before = query.state
    assert query.succeed(1) == (Discard(key(1)),)
    assert query.fail(1, ExternalError("late"), task=1) == ()
    assert query.tell(OutputLost(1, 0, 0)) == ()
    assert query.tell(CancelRequested()) == ()
    assert query.tell(Started()) == ()
    assert query.state == before


# ---- lost outputs


def test_a_lost_output_is_made_again_and_nothing_else() -> None:
    query = Query(graph_of(stage(1, tasks=2), stage(2, 1, tasks=2), stage(3, 2)))
    query.start()
    query.succeed(1, task=0)
    query.succeed(1, task=1)
    query.succeed(2, task=0)
    commands = query.tell(OutputLost(1, 1, 0))
    assert discarded(commands) == [key(1, 1, 0)]
    assert launched(commands) == [key(1, 1, 1)]
    assert query.state.stage(2).tasks[0].manifest is not None


def test_a_task_waits_while_its_input_is_made_again() -> None:
    query = Query(graph_of(stage(1), stage(2, 1)))
    query.start()
    query.succeed(1)
    query.tell(OutputLost(1, 0, 0))
    assert launched(query.fail(2, ExternalError("file not there"))) == []
    assert launched(query.succeed(1, attempt=1)) == [key(2, 0, 1)]


def test_a_lost_output_that_may_differ_takes_everything_above_with_it() -> None:
    query = Query(graph_of(stage(1, tasks=2, deterministic=False), stage(2), stage(3, 1, tasks=2), stage(4, 3, 2)))
    query.start()
    query.succeed(2)
    for task in range(2):
        query.succeed(1, task=task)
    query.succeed(3, task=0)
    commands = query.tell(OutputLost(1, 0, 0))
    assert set(discarded(commands)) == {key(1, 0), key(3, 0), key(3, 1)}
    assert launched(commands) == [key(1, 0, 1)]
    assert launched(query.succeed(1, task=0, attempt=1)) == [key(3, 0, 1), key(3, 1, 1)]
    assert query.state.stage(2).done  # beside it, not above it


def test_what_was_computed_from_a_lost_output_is_not_committed_late() -> None:
    """The consumer is deterministic, but its input was not: its running attempt saw rows that are gone."""
    query = Query(graph_of(stage(1, deterministic=False), stage(2, 1), stage(3, 2)))
    query.start()
    query.succeed(1)
    query.tell(OutputLost(1, 0, 0))
    assert query.succeed(2, attempt=0) == (Discard(key(2, 0, 0)),)
    assert not query.state.stage(2).done


def test_a_running_head_does_not_go_on_with_a_lost_output_that_may_differ() -> None:
    query = Query(graph_of(stage(1, deterministic=False)))
    query.start()
    assert launched(query.succeed(1)) == [key(HEAD)]
    query.tell(OutputLost(1, 0, 0))
    query.succeed(1, attempt=1)
    assert query.succeed(HEAD, attempt=0) != (End("finished"),)


def test_rows_that_reached_the_reader_cannot_be_taken_back() -> None:
    """A finished task of a streaming stage has given its rows away: running it again would give them twice."""
    query = Query(graph_of(stage(1, deterministic=False), stage(2, 1, tasks=2), streams=True))
    query.start()
    query.succeed(1)
    query.succeed(2, task=0)
    query.tell(OutputLost(1, 0, 0))
    again = launched(query.succeed(1, attempt=1)) if query.state.outcome is None else []
    assert key(2, 0, 1) not in again


def test_a_head_that_gave_nothing_begins_again() -> None:
    """It could not read its inputs, and said which are lost, one after the other."""
    query = Query(graph_of(stage(1, tasks=2)))
    query.start()
    query.succeed(1, task=0)
    assert launched(query.succeed(1, task=1)) == [key(HEAD)]
    assert launched(query.tell(OutputLost(1, 0, 0, unread=True))) == [key(1, 0, 1)]
    assert launched(query.tell(OutputLost(1, 1, 0, unread=True))) == [key(1, 1, 1)]
    assert query.fail(HEAD, ExternalError("lost")) == (Discard(key(HEAD)),)
    assert launched(query.succeed(1, task=0, attempt=1)) == []
    assert launched(query.succeed(1, task=1, attempt=1)) == [key(HEAD, 0, 2)]
    assert query.succeed(HEAD, attempt=2) == (End("finished"),)


# ---- layouts


def file(partition: int, size: int, name: str = "f") -> FrameFile:
    return FrameFile(f"/{name}", partition, rows=1, bytes=size)


def shuffled(policy: Policy) -> Query:
    query = Query(
        graph_of(stage(1, tasks=2), stage(2, 1, tasks=4, mergeable=True), shuffles=(1,), partitions=4), policy
    )
    query.start()
    return query


def test_small_partitions_are_read_by_one_task() -> None:
    query = shuffled(Policy(bytes_per_partition=10))
    query.succeed(1, task=0, files=(file(0, 3), file(2, 50)))
    query.succeed(1, task=1, files=(file(0, 3), file(1, 4)))
    assert query.state.stage(2).layout == ((0, 1), (2, 3))


def test_merging_can_be_switched_off() -> None:
    query = shuffled(Policy(bytes_per_partition=10, merge_small_partitions=False))
    query.succeed(1, task=0)
    query.succeed(1, task=1)
    assert query.state.stage(2).layout == ((0,), (1,), (2,), (3,))


def test_a_stage_that_cannot_be_merged_keeps_its_tasks() -> None:
    query = Query(graph_of(stage(1), stage(2, 1, tasks=3), shuffles=(1,), partitions=3))
    query.start()
    query.succeed(1)
    assert query.state.stage(2).layout == ((0,), (1,), (2,))


def test_files_of_a_shuffle_are_those_of_every_producer() -> None:
    query = shuffled(Policy())
    query.succeed(1, task=0, files=(file(0, 3, "a"), file(2, 5, "b")))
    query.succeed(1, task=1, files=(file(0, 4, "c"),))
    assert [found.path for found in query.state.files(1, 0)] == ["/a", "/c"]
    assert [found.path for found in query.state.files(1, 1)] == []
    assert [found.size for found in query.state.files(1, 2)] == [5]


def test_files_of_a_gather_are_those_of_one_producer() -> None:
    query = Query(graph_of(stage(1, tasks=2), stage(2, 1)))
    query.start()
    query.succeed(1, task=1, files=(file(0, 4, "late"),))
    query.succeed(1, task=0, files=(file(0, 3, "early"),))
    assert [found.path for found in query.state.files(1, 0)] == ["/early"]
    assert [found.path for found in query.state.files(1, 1)] == ["/late"]
    assert query.state.files(1, 2) == ()  # the producer's tasks were merged


def test_a_task_that_ended_two_processes_is_not_tried_again() -> None:
    query = Query(graph_of(stage(1)))
    query.start()
    crash = TaskCrashError("the process that ran the task was killed by SIGSEGV")
    discarded, again = query.tell(TaskErrored(TaskKey("q", 1, 0, 0), crash))
    assert (discarded, launched((again,))) == (Discard(TaskKey("q", 1, 0, 0)), [TaskKey("q", 1, 0, 1)])
    _, end = query.tell(TaskErrored(TaskKey("q", 1, 0, 1), crash))
    assert isinstance(end, End)
    assert isinstance(end.error, TaskCrashError)
    assert "not retried after 2 such attempts" in str(end.error)


def test_a_crash_between_other_failures_is_remembered() -> None:
    query = Query(graph_of(stage(1)))
    query.start()
    crash = TaskCrashError("killed")
    query.tell(TaskErrored(TaskKey("q", 1, 0, 0), crash))
    query.tell(TaskErrored(TaskKey("q", 1, 0, 1), ExternalError("no answer")))
    _, end = query.tell(TaskErrored(TaskKey("q", 1, 0, 2), crash))
    assert isinstance(end, End)


def test_a_task_of_a_silent_worker_begins_elsewhere_without_a_failure() -> None:
    query = Query(graph_of(stage(1)), Policy(retries=0))
    (first,) = query.start()
    discarded, again = query.tell(TaskStalled(first))
    second = replace(first, attempt=1)
    assert (discarded, launched((again,))) == (Discard(first), [second])
    assert query.tell(TaskErrored(first, ExternalError("it was given up"))) == (Discard(first),)
    assert query.tell(TaskSucceeded(first, Manifest(first))) == (Discard(first),), "it came back too late"
    (head,) = launched(query.tell(TaskSucceeded(second, Manifest(second))))
    assert head.stage == HEAD


def test_a_task_is_moved_some_times_only_then_it_has_to_be_patient() -> None:
    query = Query(graph_of(stage(1)))
    (key,) = query.start()
    for _ in range(MOST_MOVES):
        _, again = query.tell(TaskStalled(key))
        (key,) = launched((again,))
    assert query.tell(TaskStalled(key)) == ()
    assert query.state.stage(1).tasks[0].running


def test_a_finished_task_is_not_moved() -> None:
    query = Query(graph_of(stage(1)))
    (key,) = query.start()
    query.tell(TaskSucceeded(key, Manifest(key)))
    assert query.tell(TaskStalled(key)) == ()


def test_a_task_that_saw_too_many_workers_go_is_not_given_to_another() -> None:
    query = Query(graph_of(stage(1, tasks=2)), Policy(worker_losses=2))
    query.start()
    lost = WorkerLostError("worker flight://a:1 is lost: the connection was closed")
    for task in (0, 1):  # one machine restarts: everything that ran there is tried again
        _, again = query.tell(TaskErrored(TaskKey("q", 1, task, 0), lost))
        assert launched((again,)) == [TaskKey("q", 1, task, 1)]
    query.tell(TaskErrored(TaskKey("q", 1, 0, 1), ExternalError("no answer")))
    _, end = query.tell(TaskErrored(TaskKey("q", 1, 0, 2), lost))
    assert isinstance(end, End)
    assert isinstance(end.error, WorkerLostError)
    assert "2 workers were lost while they ran this task" in str(end.error)
    assert "sparkfusion.max_worker_losses" in str(end.error)


def test_how_many_workers_may_be_lost_is_a_setting() -> None:
    query = Query(graph_of(stage(1)), Policy(worker_losses=3))
    query.start()
    for attempt in range(2):
        _, again = query.tell(TaskErrored(TaskKey("q", 1, 0, attempt), WorkerLostError("lost")))
        assert launched((again,)) == [TaskKey("q", 1, 0, attempt + 1)]
    _, end = query.tell(TaskErrored(TaskKey("q", 1, 0, 2), WorkerLostError("lost")))
    assert isinstance(end, End)
