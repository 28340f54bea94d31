from __future__ import annotations

from functools import reduce

import pytest

from sparkfusion.ids import TaskKey
from sparkfusion.observe.events import (
    Event,
    FeedProgress,
    JoinDecided,
    QueryFailed,
    QueryFinished,
    QueryPlanned,
    QueryRestarted,
    StageFinished,
    StageSkipped,
    StageStarted,
    TaskFailed,
    TaskFinished,
    TaskRunning,
    TaskStarted,
)
from sparkfusion.observe.progress import Progress, ProgressState, advance
from sparkfusion.observe.progress_calls import ProgressCalls
from sparkfusion.observe.progress_text import describe, describe_rest, describe_stage_at
from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, Stage, StageGraph
from sparkfusion.plan.wire import encode
from tests.unit.plan.plans import plan

PLANNED = QueryPlanned("q", stages=2, tasks=6, reason=None, seconds=0.5, at=100.0)


def after(*events: Event) -> ProgressState:
    return reduce(advance, events, ProgressState())


def done(stage: int, task: int, rows: int = 10, attempt: int = 0) -> TaskFinished:
    return TaskFinished("q", TaskKey("q", stage, task, attempt), rows=rows, bytes=rows * 8, seconds=0.1)


def test_tasks_and_stages_are_counted() -> None:
    state = after(
        PLANNED,
        StageStarted("q", 1, 2),
        TaskStarted("q", TaskKey("q", 1, 0)),
        done(1, 0),
        done(1, 1),
        StageFinished("q", 1, 20, 160),
    )
    assert (state.stages_done, state.stages_total) == (1, 2)
    assert (state.tasks_done, state.tasks_total) == (2, 6)
    assert state.rows == 20


def test_the_total_follows_what_stages_really_start() -> None:
    merged = after(PLANNED, StageStarted("q", 1, 2), StageStarted("q", 2, 1))
    assert merged.tasks_total == 3
    more = after(PLANNED, StageStarted("q", 1, 9))
    assert more.tasks_total == 9


def test_nobody_waits_for_a_skipped_stage() -> None:
    """It may have been running, and one of its tasks may still come to its end."""
    state = after(PLANNED, StageStarted("q", 1, 2), done(1, 0), StageSkipped("q", 1, "because"), done(1, 1))
    assert (state.stages_done, state.stages_total) == (0, 1)
    assert state.tasks_done == 0
    state = reduce(advance, [StageStarted("q", 2, 1), done(2, 0), StageFinished("q", 2, 10, 80)], state)
    assert (state.stages_done, state.stages_total) == (1, 1)
    assert (state.tasks_done, state.tasks_total) == (1, 1)


def test_a_task_that_ran_twice_counts_once() -> None:
    state = after(
        PLANNED,
        TaskFailed("q", TaskKey("q", 1, 0), "lost", retried=True),
        done(1, 0, attempt=1),
        done(1, 0, attempt=2),
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
    progress(done(1, 0))
    assert progress.state.tasks_done == 1
    assert progress.elapsed == 1.5
    progress(QueryPlanned("next", stages=0, tasks=0, reason="small", seconds=0.0, at=101.0))
    assert (progress.state.query, progress.state.reason, progress.state.tasks_done) == ("next", "small", 0)
    progress.restart()
    assert progress.state.status == "planning"


def test_one_line_tells_it_all() -> None:
    state = after(PLANNED, StageStarted("q", 1, 2), done(1, 0, rows=1234))
    assert describe(state, now=100.5) == "1.0 s  stages 0/2  tasks 1/6  1,234 rows"
    single = after(QueryPlanned("q", stages=0, tasks=0, reason="small", seconds=0.0, at=1.0))
    assert describe(single, now=2.0) == "1.0 s  single node"
    assert describe(ProgressState(), now=0.0) == "0.0 s  planning"


def graph() -> StageGraph:
    """Stage 1 reads 3,000 bytes, stage 2 reads stage 1 and 1,000 bytes, the head sorts."""
    scan, joined = encode(plan("select k, v from t where v > 1")), encode(plan("select k, count(*) from t group by k"))
    return StageGraph(
        stages=(
            Stage(1, scan, 3, (), 1, mergeable=False, deterministic=True, scan_bytes=3000),
            Stage(2, joined, 2, (1,), 2, mergeable=True, deterministic=True, scan_bytes=1000),
        ),
        exchanges=(
            Exchange(1, ExchangeKind.SHUFFLE, 1, 2, ("k",), ("k",)),
            Exchange(2, ExchangeKind.GATHER, 2, 1, ("k",)),
        ),
        head=Head((2,), plan=encode(plan("select k from t order by k"))),
    )


def planned() -> QueryPlanned:
    return QueryPlanned("q", stages=2, tasks=5, reason=None, seconds=0.0, graph=graph(), at=100.0)


def test_each_stage_has_its_own_figures() -> None:
    first = TaskKey("q", 1, 0)
    state = after(
        planned(),
        StageStarted("q", 1, 3, at=100.0),
        TaskRunning("q", first, "w"),
        TaskRunning("q", TaskKey("q", 1, 1), "w"),
        TaskRunning("q", TaskKey("q", 1, 2), "w"),
        done(1, 0),
        TaskFailed("q", TaskKey("q", 1, 1), "lost", retried=True),
    )
    stage, waiting = state.stages[1], state.stages[2]
    assert (stage.status, stage.done, stage.running, stage.tasks) == ("running", 1, 1, 3)
    assert (stage.rows, stage.bytes, stage.failed_attempts) == (10, 80, 1)
    assert (waiting.status, waiting.done, waiting.tasks) == ("waiting", 0, 2)
    assert (state.tasks_done, state.tasks_running, state.tasks_total) == (1, 1, 5)
    assert [each.stage for each in state.running_stages] == [1]


def test_a_stage_is_described_in_plain_words() -> None:
    state = after(planned())
    assert state.stages[1].doing == "read rows in memory; filter"
    assert state.stages[2].doing == "read rows in memory; aggregate"
    assert state.stages[0].doing == "read rows in memory; sort, merge"


def test_the_head_has_a_line_and_is_not_counted() -> None:
    state = after(planned(), StageStarted("q", 0, 1), TaskRunning("q", TaskKey("q", 0, 0), ""), done(0, 0))
    assert (state.stages_total, state.tasks_total, state.tasks_done, state.rows) == (2, 5, 0, 0)
    assert [each.stage for each in state.running_stages] == [0]
    assert describe_stage_at(state, state.stages[0], 101.0).name == "head"


def test_an_absorbed_stage_is_not_waited_for() -> None:
    state = after(planned(), JoinDecided("q", 2, "small", absorbed=1))
    assert (state.stages_total, state.stages[1].status, state.tasks_total) == (1, "skipped", 2)


def test_a_query_that_begins_again_has_new_stages() -> None:
    again = QueryRestarted("q", stages=2, tasks=5, reason="memory", seconds=0.1, graph=graph())
    state = after(planned(), StageStarted("q", 1, 3), done(1, 0), again)
    assert (state.status, state.tasks_done, state.started_at) == ("running", 0, 100.0)
    assert {stage.status for stage in state.stages.values()} == {"waiting"}


def test_the_rest_is_estimated_only_where_sizes_are_known() -> None:
    state = after(planned(), StageStarted("q", 1, 3, at=100.0))
    assert state.stages[1].seconds_left(104.0) is None, "no task is done"
    state = advance(state, done(1, 0))
    assert state.stages[1].seconds_left(104.0) == pytest.approx(8.0), "two tasks, of which each takes four seconds"
    assert state.input_bytes(state.stages[2]) is None
    assert state.seconds_left(104.0) is None, "nobody knows yet what stage 2 reads"
    state = reduce(advance, [done(1, 1), done(1, 2), StageFinished("q", 1, 30, 240, at=112.0)], state)
    assert state.input_bytes(state.stages[2]) == 1000 + 3 * 80
    assert state.seconds_left(112.0) == 12.0 * 1240 / 3000
    state = reduce(advance, [StageStarted("q", 2, 2, at=112.0), done(2, 0)], state)
    assert state.seconds_left(130.0) == 18.0, "not less than its last stage needs"
    ended = advance(state, QueryFinished("q", rows=1, seconds=12.0))
    assert ended.seconds_left(113.0) is None


def test_time_without_a_slot_is_not_estimated_from() -> None:
    running = TaskRunning("q", TaskKey("q", 1, 0), "w", at=150.0)
    state = after(planned(), StageStarted("q", 1, 3, at=100.0), running, done(1, 0))
    assert state.stages[1].seconds_left(152.0) == pytest.approx(4.0)


def test_units_of_a_feed_are_shown_with_its_query() -> None:
    told = FeedProgress("q", "pages", 0, found=7, handed=5, done=3, replayed=0, discovering=True)
    state = after(planned(), told)
    assert "units 3/7, still discovering" in describe(state, now=101.0)


def test_what_has_no_line_is_summed_up() -> None:
    state = after(planned(), StageSkipped("q", 1, "no rows"))
    assert describe_rest(state, shown=0) == "stages: 1 waiting, 1 skipped"
    both = after(planned(), StageStarted("q", 1, 3), StageStarted("q", 2, 2))
    assert describe_rest(both, shown=1) == "stages: 1 more running"


def test_a_stage_without_a_slot_is_not_busy() -> None:
    both = after(planned(), StageStarted("q", 1, 3), StageStarted("q", 2, 2))
    assert [stage.stage for stage in both.busy_stages] == [1, 2], "nobody tells which tasks run, as on Spark"
    state = advance(both, TaskRunning("q", TaskKey("q", 2, 0), "w"))
    assert [stage.stage for stage in state.busy_stages] == [2]
    assert describe_rest(state, shown=1) == "stages: 1 without a slot"
    state = reduce(advance, [done(2, 0), TaskRunning("q", TaskKey("q", 1, 0), "w")], state)
    assert [stage.stage for stage in state.busy_stages] == [1, 2], "between its tasks, a line does not vanish"
    head = after(planned(), StageStarted("q", 1, 3), TaskRunning("q", TaskKey("q", 0, 0), ""))
    assert [stage.stage for stage in head.busy_stages] == [1], "the head runs here on every runner"


def test_tasks_of_large_numbers_are_counted_once() -> None:
    state = after(planned(), StageStarted("q", 1, 5_000), *(done(1, task) for task in (0, 4_999, 4_999, 63, 64)))
    assert (state.stages[1].done, state.stages[1].rows) == (4, 40)


def test_a_function_is_called_at_every_turn_and_seldom_in_between() -> None:
    seen: list[ProgressState] = []
    calls = ProgressCalls(seen.append, every=1.0)
    calls(TaskFinished("unknown", TaskKey("unknown", 1, 0), rows=1, bytes=1, seconds=1.0))
    calls(planned())
    calls(StageStarted("q", 1, 3, at=100.1))
    for number, at in enumerate((100.2, 101.0, 101.2)):
        calls(TaskFinished("q", TaskKey("q", 1, number), rows=1, bytes=1, seconds=0.1, at=at))
    assert [state.tasks_done for state in seen] == [0, 0, 3]
    calls(StageFinished("q", 1, 3, 3, at=101.3))
    calls(QueryFailed("q", "no", cancelled=False, at=101.4))
    assert [state.status for state in seen[3:]] == ["running", "failed"]
    calls(StageStarted("q", 2, 3))
    assert len(seen) == 5, "an event after the end is nobody's"
