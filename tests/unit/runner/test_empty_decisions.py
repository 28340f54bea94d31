"""Stages that are skipped when an exchange has no rows, and what happens to their tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkfusion.errors import QueryCancelledError
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.ids import TaskKey
from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.runner.empty_decisions import StageSkip
from sparkfusion.runner.machine import (
    Command,
    Discard,
    End,
    MachineEvent,
    OutputLost,
    RunTasks,
    Started,
    TaskErrored,
    TaskSucceeded,
    transition,
)
from sparkfusion.runner.query_state import Policy, QueryState
from tests.unit.plan.plans import NO_BROADCAST, context, plan

ON = Policy(skip_empty_stages=True, merge_small_partitions=False)
OFF = replace(ON, skip_empty_stages=False)
WAITING = replace(ON, adaptive_broadcast_bytes=-1)
"""The probe side waits for the build side."""
JOIN = "select u.v, t.v as w, count(*) from u join t on u.k = t.k group by u.v, t.v"
STREAMED = "select u.v, t.v as w from u join t on u.k = t.k"
SORTED = "select u.v, t.v as w from u join t on u.k = t.k order by w"
LEFT = "select u.v, t.v as w, count(*) from t left join u on u.k = t.k group by u.v, t.v"
COUNT = "select count(*) from u join t on u.k = t.k"
SHARED = "select a.k from (select u.k from u join t on u.k = t.k) a full join t on t.k = a.k"
TWO_JOINS = (
    "select u.s, count(*) from u join t on u.k = t.k join (select s, v + 1 as x from u) w on w.x = t.v group by u.s"
)
BUILD, PROBE, JOINED, GROUPED, HEAD = 1, 2, 3, 4, 0
RUNNING = (TaskKey("q", PROBE, 0), TaskKey("q", PROBE, 1), TaskKey("q", PROBE, 2))


class Query:
    """A query over real plans: tells it events, and returns what is started."""

    def __init__(self, sql: str, policy: Policy) -> None:
        self.state = QueryState("q", distribute(plan(sql, NO_BROADCAST), SchemaProbe(context())), policy)
        self.commands: tuple[Command, ...] = ()
        self.skips: list[StageSkip] = []

    def tell(self, event: MachineEvent) -> list[str]:
        """`stage.task` of each task that starts."""
        self.state, self.commands = transition(self.state, event)
        self.skips += [each for each in self.commands if isinstance(each, StageSkip)]
        runs = [command for command in self.commands if isinstance(command, RunTasks)]
        return [f"{launch.key.stage}.{launch.key.task}" for run in runs for launch in run.launches]

    def finish(self, stage: int, rows: int = 0) -> list[str]:
        """All tasks of a stage succeed, each with so many rows. What starts with the last one."""
        starts: list[str] = []
        for task in range(len(self.state.stage(stage).tasks)):
            key = TaskKey("q", stage, task)
            files = (FrameFile(f"/{key}", 0, rows, 10),) if rows else ()
            starts += self.tell(TaskSucceeded(key, Manifest(key, files)))
        return starts

    @property
    def skipped(self) -> list[int]:
        return [each.stage for each in self.skips]

    @property
    def discarded(self) -> list[TaskKey]:
        return [each.key for each in self.commands if isinstance(each, Discard)]


def test_a_join_with_an_empty_side_and_all_above_it_are_skipped() -> None:
    query = Query(JOIN, WAITING)
    assert query.tell(Started()) == ["1.0", "1.1"]
    assert query.finish(BUILD) == ["4.0", "4.1", "4.2"]
    assert query.skipped == [JOINED, PROBE]
    first, second = query.skips
    assert first.reason == "skipped: it gives no rows, because stage 1 gave none"
    assert second.reason == "skipped: no stage that reads its output can return rows"
    assert query.discarded == []
    assert query.state.graph.stage(JOINED).decisions == (first.reason,)
    assert query.state.graph.stage(PROBE).decisions == (second.reason,)
    query.finish(GROUPED)
    assert query.state.outcome == "finished"


def test_switched_off_everything_runs() -> None:
    query = Query(JOIN, OFF)
    query.tell(Started())
    query.finish(BUILD)
    assert query.finish(PROBE) == ["3.0", "3.1", "3.2"]
    assert query.skips == []


def test_tasks_of_a_stage_that_nobody_needs_are_stopped() -> None:
    query = Query(JOIN, ON)
    assert query.tell(Started()) == ["1.0", "1.1", "2.0", "2.1", "2.2"]
    query.finish(BUILD)
    assert query.skipped == [JOINED, PROBE]
    assert query.skips[1].running == RUNNING
    assert query.discarded == [*RUNNING]


def test_what_a_stopped_task_reports_changes_nothing() -> None:
    query = Query(JOIN, ON)
    query.tell(Started())
    query.tell(TaskSucceeded(RUNNING[0], Manifest(RUNNING[0], (FrameFile("/x", 0, 5, 10),))))
    query.finish(BUILD)
    assert query.discarded == [*RUNNING[1:]]
    before = query.state
    assert query.tell(TaskErrored(RUNNING[1], QueryCancelledError("stopped"))) == []
    assert query.tell(TaskSucceeded(RUNNING[2], Manifest(RUNNING[2], (FrameFile("/y", 0, 5, 10),)))) == []
    assert query.discarded == [RUNNING[2]]
    assert query.state == before
    assert query.state.files(PROBE, 0) == ()


def test_an_empty_probe_side_is_enough_for_an_inner_join() -> None:
    query = Query(JOIN, ON)
    query.tell(Started())
    query.finish(PROBE)
    assert query.skipped == [JOINED, BUILD]
    assert query.skips[0].reason == "skipped: it gives no rows, because stage 2 gave none"


def test_a_stage_with_rows_is_not_skipped() -> None:
    query = Query(JOIN, ON)
    query.tell(Started())
    query.finish(BUILD, rows=1)
    assert query.finish(PROBE, rows=1) == ["3.0", "3.1", "3.2"]
    assert query.skips == []


def test_an_outer_join_keeps_the_rows_of_its_other_side() -> None:
    query = Query(LEFT, ON)
    query.tell(Started())
    query.finish(BUILD)
    assert query.finish(PROBE, rows=1) == ["3.0", "3.1", "3.2"]
    assert query.skips == []


def test_the_stage_that_gives_rows_to_the_consumer_runs() -> None:
    """It may have to write files. Only what it does not need is skipped."""
    query = Query(STREAMED, ON)
    query.tell(Started())
    assert query.finish(BUILD) == ["3.0", "3.1", "3.2"]
    assert query.skipped == [PROBE]
    query.finish(JOINED)
    assert query.state.outcome == "finished"
    assert query.commands == (End("finished"),)


def test_the_head_runs_over_skipped_stages() -> None:
    query = Query(SORTED, ON)
    query.tell(Started())
    assert query.finish(BUILD) == ["0.0"]
    assert query.skipped == [JOINED, PROBE]


def test_an_aggregate_of_all_rows_keeps_its_row() -> None:
    query = Query(COUNT, ON)
    query.tell(Started())
    query.finish(BUILD)
    assert query.finish(PROBE, rows=1) == ["3.0", "3.1", "3.2"]
    assert query.skips == []


def test_a_stage_that_somebody_else_reads_runs() -> None:
    query = Query(JOIN, ON)
    query.tell(Started())
    graph = query.state.graph
    query.state = replace(query.state, graph=graph.with_stage(replace(graph.stage(BUILD), inputs=(PROBE,))))
    query.finish(BUILD)
    assert query.skipped == [JOINED]
    assert query.discarded == []
    assert not query.state.stage(PROBE).done


@pytest.mark.parametrize("deterministic", [True, False])
def test_rows_that_may_come_out_differently_prove_nothing(deterministic: bool) -> None:
    """If output is lost, everything that was computed from such rows is computed again, perhaps with rows."""
    query = Query(TWO_JOINS, ON)
    graph = query.state.graph
    changed = replace(graph.stage(BUILD), deterministic=deterministic)
    query.state = replace(query.state, graph=graph.with_stage(changed))
    query.tell(Started())
    query.finish(BUILD, rows=1)
    query.finish(PROBE, rows=1)
    query.finish(JOINED)
    assert query.skipped == ([5, 4] if deterministic else [])


def test_lost_output_of_others_does_not_bring_a_skipped_stage_back() -> None:
    query = Query(JOIN, WAITING)
    query.tell(Started())
    query.finish(BUILD)
    assert query.tell(OutputLost(PROBE, 0, 1)) == []
    assert query.state.stage(PROBE).done


def test_the_state_of_a_skipped_stage_has_its_own_tasks() -> None:
    """So that it could run after all, with the partitions that its readers expect."""
    query = Query(JOIN, WAITING)
    query.tell(Started())
    query.finish(BUILD)
    skipped = query.state.stage(PROBE)
    assert skipped.layout == ((0,), (1,), (2,))
    assert skipped.skipped
    assert [task.manifest for task in skipped.tasks] == [Manifest(key) for key in RUNNING]


@pytest.mark.parametrize("policy", [ON, OFF], ids=["on", "off"])
def test_a_query_over_empty_tables_ends(policy: Policy) -> None:
    query = Query(SHARED, policy)
    waiting = query.tell(Started())
    while waiting:
        stage = int(waiting[0].split(".")[0])
        waiting = [each for each in waiting if not each.startswith(f"{stage}.")]
        if not query.state.stage(stage).done:
            waiting += query.finish(stage)
    assert query.state.outcome == "finished"
