"""When the sides of a join are swapped: from their exact sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkfusion.config import ALWAYS
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.ids import TaskKey
from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.runner.join_decisions import JoinDecision
from sparkfusion.runner.machine import RunTasks, Started, TaskSucceeded, transition
from sparkfusion.runner.query_state import Policy, QueryState
from tests.unit.plan.plans import NO_BROADCAST, context, plan

ON = Policy(swap_factor=4, bytes_per_partition=100, merge_small_partitions=False)
JOIN = "select u.v, t.v as w, count(*) from u join t on u.k = t.k group by u.v, t.v"
GROUPED = "select k, count(*) from t group by k"


def run(sql: str, policy: Policy, *sizes: int) -> tuple[QueryState, list[JoinDecision], list[int]]:
    """The query after its first stages wrote so many bytes: what was decided, and which stages started."""
    state = QueryState("q", distribute(plan(sql, NO_BROADCAST), SchemaProbe(context())), policy)
    state, commands = transition(state, Started())
    decided, started = list[JoinDecision](), list[int]()
    for stage, size in enumerate(sizes, start=1):
        for task in range(len(state.stage(stage).tasks)):
            key = TaskKey("q", stage, task)
            files = (FrameFile(f"/{key}", 0, 1, size),) if task == 0 else ()
            state, commands = transition(state, TaskSucceeded(key, Manifest(key, files)))
            decided += [each for each in commands if isinstance(each, JoinDecision)]
            started += [each.stage for each in commands if isinstance(each, RunTasks)]
    return state, decided, started


@pytest.mark.parametrize(
    ("policy", "build", "probe", "swapped"),
    [
        (ON, 400, 100, True),
        (ON, 399, 100, False),
        (ON, 101, 0, True),
        (ON, 100, 0, False),
        (ON, 100, 400, False),
        (replace(ON, swap_factor=0), 4000, 1, False),
        (replace(ON, swap_factor=ALWAYS), 1, 400, True),
    ],
    ids=["at the factor", "below it", "an empty probe side", "small", "a smaller build side", "off", "forced"],
)
def test_a_much_larger_build_side_becomes_the_probe_side(policy: Policy, build: int, probe: int, swapped: bool) -> None:
    before = distribute(plan(JOIN, NO_BROADCAST), SchemaProbe(context())).stage(3)
    state, decided, started = run(JOIN, policy, build, probe)
    assert started == [3]
    assert bool(decided) == swapped
    joined = state.graph.stage(3)
    assert (joined.plan != before.plan) == swapped
    assert joined.decisions == tuple(each.reason for each in decided)
    if swapped:
        assert decided == [JoinDecision(3, decided[0].reason)]
        assert decided[0].reason == (
            f"sides swapped: the build side (stage 1) has {build:,} bytes, the probe side (stage 2) {probe:,}"
        )


def test_a_stage_without_a_join_stays() -> None:
    state, decided, started = run(GROUPED, replace(ON, swap_factor=ALWAYS), 400)
    assert decided == []
    assert started == [2]
    assert state.graph.stage(2).decisions == ()
