from __future__ import annotations

from functools import reduce

from sparkfusion.ids import TaskKey
from sparkfusion.observe.events import (
    Event,
    QueryFailed,
    QueryFinished,
    QueryPlanned,
    StageFinished,
    StageSkipped,
    StageStarted,
    TaskFailed,
    TaskFinished,
    TaskStarted,
)
from sparkfusion.observe.progress import Progress, ProgressState, advance, describe

PLANNED = QueryPlanned("q", stages=2, tasks=6, reason=None, seconds=0.5, at=100.0)


def after(*events: Event) -> ProgressState:
    return reduce(advance, events, ProgressState())


def done(stage: int, task: int, rows: int = 10, attempt: int = 0) -> TaskFinished:
    return TaskFinished("q", TaskKey("q", stage, task, attempt), rows=rows, bytes=rows * 8, seconds=0.1)


def test_tasks_and_stages_are_counted() -> None:
    state = after(
        PLANNED,
        StageStarted("q", 0, 2),
        TaskStarted("q", TaskKey("q", 0, 0)),
        done(0, 0),
        done(0, 1),
        StageFinished("q", 0, 20, 160),
    )
    assert (state.stages_done, state.stages_total) == (1, 2)
    assert (state.tasks_done, state.tasks_total) == (2, 6)
    assert state.rows == 20


def test_the_total_follows_what_stages_really_start() -> None:
    merged = after(PLANNED, StageStarted("q", 0, 2), StageStarted("q", 1, 1))
    assert merged.tasks_total == 3
    more = after(PLANNED, StageStarted("q", 0, 9))
    assert more.tasks_total == 9


def test_nobody_waits_for_a_skipped_stage() -> None:
    """It may have been running, and one of its tasks may still come to its end."""
    state = after(PLANNED, StageStarted("q", 0, 2), done(0, 0), StageSkipped("q", 0, "because"), done(0, 1))
    assert (state.stages_done, state.stages_total) == (0, 1)
    assert state.tasks_done == 0
    state = reduce(advance, [StageStarted("q", 1, 1), done(1, 0), StageFinished("q", 1, 10, 80)], state)
    assert (state.stages_done, state.stages_total) == (1, 1)
    assert (state.tasks_done, state.tasks_total) == (1, 1)


def test_a_task_that_ran_twice_counts_once() -> None:
    state = after(
        PLANNED,
        TaskFailed("q", TaskKey("q", 0, 0), "lost", retried=True),
        done(0, 0, attempt=1),
        done(0, 0, attempt=2),
    )
    assert (state.tasks_done, state.rows, state.failed_attempts) == (1, 10, 1)


def test_time_runs_from_planning_to_the_end() -> None:
    assert after(PLANNED).elapsed(now=101.0) == 1.5
    ended = after(PLANNED, QueryFinished("q", rows=1, seconds=2.0, at=102.0))
    assert ended.status == "finished"
    assert ended.elapsed(now=500.0) == 2.5


def test_a_failure_and_a_cancellation_are_told_apart() -> None:
    assert after(PLANNED, QueryFailed("q", "no", cancelled=False)).status == "failed"
    assert after(PLANNED, QueryFailed("q", "no", cancelled=True)).status == "cancelled"


def test_the_subscriber_follows_the_query_planned_last() -> None:
    progress = Progress(clock=lambda: 101.0)
    progress(PLANNED)
    progress(TaskFinished("other", TaskKey("other", 0, 0), rows=1, bytes=1, seconds=1.0))
    assert progress.state.tasks_done == 0
    progress(done(0, 0))
    assert progress.state.tasks_done == 1
    assert progress.elapsed == 1.5
    progress(QueryPlanned("next", stages=0, tasks=0, reason="small", seconds=0.0, at=101.0))
    assert (progress.state.query, progress.state.reason, progress.state.tasks_done) == ("next", "small", 0)
    progress.restart()
    assert progress.state.status == "planning"


def test_one_line_tells_it_all() -> None:
    state = after(PLANNED, StageStarted("q", 0, 2), done(0, 0, rows=1234))
    assert describe(state, now=100.5) == "1.0 s  stages 0/2  tasks 1/6  1,234 rows"
    single = after(QueryPlanned("q", stages=0, tasks=0, reason="small", seconds=0.0, at=1.0))
    assert describe(single, now=2.0) == "1.0 s  single node"
    assert describe(ProgressState(), now=0.0) == "0.0 s  planning"
