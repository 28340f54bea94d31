"""When a shuffle join becomes a broadcast join: from sizes, and in which order stages then start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from sparkfusion.config import ALWAYS
from sparkfusion.errors import ExternalError
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.ids import TaskKey
from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.isolate import isolate
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.shuffle_joins import find_shuffle_joins
from sparkfusion.plan.stage import StageGraph
from sparkfusion.runner.join_decisions import JoinDecision, JoinSizes, refuse_broadcast
from sparkfusion.runner.machine import (
    Command,
    Discard,
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

Change = Callable[[StageGraph], StageGraph]
LIMIT = 1000
ON = Policy(adaptive_broadcast_bytes=LIMIT, bytes_per_partition=100, merge_small_partitions=False)
FORCED = replace(ON, adaptive_broadcast_bytes=ALWAYS)
OFF = replace(ON, adaptive_broadcast_bytes=0)
SMALL = JoinSizes(build=100, probe=10_000, probe_tasks=4, join_tasks=4)
JOIN = "select u.v, t.v as w, count(*) from u join t on u.k = t.k group by u.v, t.v"
TWO_JOINS = (
    "select u.s, count(*) from u join t on u.k = t.k join (select s, v + 1 as x from u) w on w.x = t.v group by u.s"
)


# ---- the decision


def test_a_small_build_side_is_broadcast() -> None:
    assert refuse_broadcast(SMALL, ON) is None


@pytest.mark.parametrize(
    ("sizes", "policy", "reason"),
    [
        (replace(SMALL, build=LIMIT + 1), ON, "more than sparkfusion.adaptive_broadcast_bytes (1,000)"),
        (SMALL, replace(ON, task_memory=799), "too much for the memory of a task (799 bytes)"),
        (replace(SMALL, probe_tasks=1), ON, "the probe side has too few tasks for this join (1)"),
        (replace(SMALL, probe=2999), ON, "4 tasks would hash 300 bytes more to save a shuffle of about 2,999"),
    ],
    ids=["size", "memory", "tasks", "cost"],
)
def test_a_join_stays_a_shuffle_join(sizes: JoinSizes, policy: Policy, reason: str) -> None:
    refused = refuse_broadcast(sizes, policy)
    assert refused is not None
    assert reason in refused
    assert refuse_broadcast(sizes, replace(policy, adaptive_broadcast_bytes=ALWAYS)) is None


@pytest.mark.parametrize(
    ("sizes", "policy"),
    [
        (replace(SMALL, build=LIMIT, probe=30_000), ON),
        (SMALL, replace(ON, task_memory=800)),
        (replace(SMALL, probe=0, build=100, probe_tasks=1), ON),
        (replace(SMALL, probe=3000), ON),
    ],
    ids=["size", "memory", "tasks", "cost"],
)
def test_at_the_limit_it_is_broadcast(sizes: JoinSizes, policy: Policy) -> None:
    assert refuse_broadcast(sizes, policy) is None


# ---- the machine


class Query:
    """A query over real plans: tells it events, and returns what is started."""

    def __init__(
        self, sql: str, policy: Policy, change: Callable[[StageGraph], StageGraph] = lambda graph: graph
    ) -> None:
        graph = change(distribute(plan(sql, NO_BROADCAST), SchemaProbe(context())))
        self.state = QueryState("q", graph, policy)
        self.decisions: list[JoinDecision] = []

    def tell(self, event: MachineEvent) -> list[str]:
        """`stage.task` of each task that starts."""
        self.state, self.commands = transition(self.state, event)
        self.decisions += [each for each in self.commands if isinstance(each, JoinDecision)]
        return started(self.commands)

    def finish(self, stage: int, size: int = 10, attempt: int = 0) -> list[str]:
        """All tasks of a stage succeed. What starts with the last one."""
        starts: list[str] = []
        for task in range(len(self.state.stage(stage).tasks)):
            key = TaskKey("q", stage, task, attempt)
            files = (FrameFile(f"/{key}", 0, 1, size),)
            starts += self.tell(TaskSucceeded(key, Manifest(key, files)))
        return starts


def started(commands: tuple[Command, ...]) -> list[str]:
    return [
        f"{launch.key.stage}.{launch.key.task}"
        for command in commands
        if isinstance(command, RunTasks)
        for launch in command.launches
    ]


def larger_probe(graph: StageGraph) -> StageGraph:
    return graph.with_stage(replace(graph.stage(2), scan_bytes=100_000))


def smaller_probe(graph: StageGraph) -> StageGraph:
    return find_shuffle_joins(graph.with_stage(replace(graph.stage(2), scan_bytes=1)))


def test_switched_off_both_sides_start_together() -> None:
    query = Query(JOIN, OFF, larger_probe)
    assert query.tell(Started()) == ["1.0", "1.1", "2.0", "2.1", "2.2"]
    query.finish(1)
    assert query.finish(2) == ["3.0", "3.1", "3.2"]
    assert query.decisions == []


def test_the_probe_side_waits_and_becomes_part_of_the_join() -> None:
    query = Query(JOIN, ON, larger_probe)
    assert query.tell(Started()) == ["1.0", "1.1"]
    assert query.finish(1) == ["3.0", "3.1", "3.2"]
    (decision,) = query.decisions
    assert decision == JoinDecision(3, decision.reason, absorbed=2)
    assert decision.reason == (
        "broadcast join: the build side (stage 1) has 20 bytes, which each of 3 tasks reads; "
        "the probe side (stage 2, reads 100,000 bytes) is not shuffled"
    )
    assert query.state.graph.stage(3).decisions == (decision.reason,)
    assert query.finish(3) == ["4.0", "4.1", "4.2"]


def test_every_task_reads_the_whole_build_side_and_its_part_of_the_probe_side() -> None:
    query = Query(JOIN, ON, larger_probe)
    query.tell(Started())
    query.finish(1)
    joined = query.state.graph.stage(3)
    assert [isolate(joined, (task,)).groups for task in range(3)] == [((1, 0), (1, 1), (1, 2))] * 3


def test_a_build_side_that_turns_out_to_be_large_is_not_broadcast() -> None:
    query = Query(JOIN, ON, larger_probe)
    query.tell(Started())
    assert query.finish(1, size=LIMIT) == ["2.0", "2.1", "2.2"]
    (decision,) = query.decisions
    assert decision == JoinDecision(3, decision.reason)
    assert "has 2,000 bytes, more than sparkfusion.adaptive_broadcast_bytes (1,000)" in decision.reason
    assert query.state.graph.stage(3).decisions == (decision.reason,)
    assert query.finish(2) == ["3.0", "3.1", "3.2"]
    assert len(query.decisions) == 1


def test_a_probe_side_that_reads_less_does_not_wait() -> None:
    query = Query(JOIN, ON, smaller_probe)
    assert query.tell(Started()) == ["1.0", "1.1", "2.0", "2.1", "2.2"]
    query.finish(1)
    assert query.finish(2) == ["3.0", "3.1", "3.2"]
    assert query.decisions == []


def test_forced_it_waits_in_any_case() -> None:
    query = Query(JOIN, FORCED, smaller_probe)
    assert query.tell(Started()) == ["1.0", "1.1"]
    assert query.finish(1, size=10 * LIMIT) == ["3.0", "3.1", "3.2"]


def test_a_plan_that_would_be_too_large_stays() -> None:
    query = Query(JOIN, replace(ON, max_plan_bytes=100), larger_probe)
    query.tell(Started())
    assert query.finish(1) == ["2.0", "2.1", "2.2"]
    assert "the plan of a task would be too large" in query.decisions[0].reason


def test_a_lost_build_side_is_computed_again_before_the_join_continues() -> None:
    query = Query(JOIN, ON, larger_probe)
    query.tell(Started())
    query.finish(1)
    assert query.tell(OutputLost(1, 0, 0)) == ["1.0"]
    assert query.tell(TaskErrored(TaskKey("q", 3, 1), ExternalError("frames are lost"))) == []
    key = TaskKey("q", 1, 0, 1)
    assert query.tell(TaskSucceeded(key, Manifest(key))) == ["3.1"]
    assert [each for each in query.commands if isinstance(each, Discard)] == []
    assert len(query.decisions) == 1


def test_a_build_side_that_is_lost_before_the_decision_is_waited_for() -> None:
    query = Query(JOIN, ON, larger_probe)
    query.tell(Started())
    query.tell(TaskSucceeded(TaskKey("q", 1, 0), Manifest(TaskKey("q", 1, 0))))
    assert query.tell(OutputLost(1, 0, 0)) == ["1.0"]
    assert query.tell(TaskSucceeded(TaskKey("q", 1, 1), Manifest(TaskKey("q", 1, 1)))) == []
    key = TaskKey("q", 1, 0, 1)
    assert query.tell(TaskSucceeded(key, Manifest(key))) == ["3.0", "3.1", "3.2"]


def test_joins_of_joins_are_decided_one_after_the_other() -> None:
    query = Query(TWO_JOINS, FORCED)
    waiting, seen = query.tell(Started()), set[str]()
    while waiting:
        seen |= set(waiting)
        stage = int(waiting[0].split(".")[0])
        waiting = [each for each in waiting if not each.startswith(f"{stage}.")] + query.finish(stage)
    assert query.state.outcome == "finished"
    absorbed = {decision.absorbed for decision in query.decisions}
    assert len(absorbed) == 2
    assert None not in absorbed
    assert not any(each.startswith(f"{stage}.") for each in seen for stage in absorbed)
