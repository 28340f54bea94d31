"""When large partitions are split: from sizes, into which tasks, and what stays so when output is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sparkfusion.config import ALWAYS
from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.ids import TaskKey
from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.wire import decode, walk
from sparkfusion.runner.machine import MachineEvent, OutputLost, RunTasks, Started, TaskSucceeded, transition
from sparkfusion.runner.query_state import Policy, Portion, QueryState
from sparkfusion.runner.skew_decisions import SkewDecision, find_skew
from tests.unit.plan.plans import NO_BROADCAST, context, plan

ON = Policy(skew_bytes=1000, bytes_per_partition=400, merge_small_partitions=False)
FORCED = replace(ON, skew_bytes=ALWAYS)
OFF = replace(ON, skew_bytes=0)
JOIN = "select u.v, t.v as w, count(*) from u join t on u.k = t.k group by u.v, t.v"
SORTED = "select u.v, t.v as w from u join t on u.k = t.k order by u.v + t.v"
LEFT = "select u.v, t.v as w from u left join t on u.k = t.k"
BUILD, PROBE, JOINED = 1, 2, 3
EVEN = [[10, 10, 10]] * 3
SKEWED = [[10, 500, 10], [10, 400, 10], [10, 500, 10]]
"""Bytes of each partition, for each of the three tasks of the probe side. Partition 1 has 1,400."""


# ---- the sizes


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ([200, 200, 1001], (2,)),
        ([200, 200, 1000], None),
        ([100, 100, 1000], (2,)),
        ([100, 100, 999], None),
        ([0, 5000], (1,)),
        ([5000, 0, 6000, 0, 0], (0, 2)),
        ([5000, 5000, 5000], None),
    ],
)
def test_a_large_partition_has_five_times_the_median_and_many_bytes(
    sizes: list[int], found: tuple[int, ...] | None
) -> None:
    skew = find_skew(1, sizes, ON)
    assert (skew.partitions if skew is not None else None) == found


def test_forced_every_partition_with_rows_counts_as_large() -> None:
    skew = find_skew(1, [1, 0, 1], FORCED)
    assert skew is not None
    assert skew.partitions == (0, 2)


# ---- the machine


class Query:
    """A query over real plans: the tasks of its stages write what it is told."""

    def __init__(self, sql: str, policy: Policy) -> None:
        graph = distribute(plan(sql, NO_BROADCAST), SchemaProbe(context()))
        self.state = QueryState("q", graph, policy)
        self.decisions: list[SkewDecision] = []
        self.tell(Started())

    def tell(self, event: MachineEvent) -> list[str]:
        """`stage.task` of each task that starts."""
        self.state, commands = transition(self.state, event)
        self.decisions += [each for each in commands if isinstance(each, SkewDecision)]
        runs = [command for command in commands if isinstance(command, RunTasks)]
        return [f"{launch.key.stage}.{launch.key.task}" for run in runs for launch in run.launches]

    def finish(self, stage: int, written: Sequence[Sequence[int]]) -> list[str]:
        """All tasks of a stage succeed with so many bytes for each partition. What starts with the last one."""
        starts: list[str] = []
        for task, sizes in enumerate(written):
            key = TaskKey("q", stage, task)
            files = tuple(FrameFile(f"/{key}/{p}", p, 1, size) for p, size in enumerate(sizes) if size)
            starts += self.tell(TaskSucceeded(key, Manifest(key, files)))
        return starts

    def join(
        self, probe: Sequence[Sequence[int]], build: Sequence[Sequence[int]] = ((1, 1, 1), (1, 1, 1))
    ) -> list[str]:
        """Both sides of the join finish; what starts then."""
        self.finish(BUILD, build)
        return self.finish(PROBE, probe)

    def reads(self, task: int, exchange: int) -> list[str]:
        """The paths of the files that a task of the join reads."""
        stage = self.state.stage(JOINED)
        (partition,) = stage.layout[task]
        return [file.path for file in self.state.files(exchange, partition, stage.portion_of(task))]


def test_even_partitions_are_not_split() -> None:
    query = Query(JOIN, ON)
    assert query.join(EVEN) == ["3.0", "3.1", "3.2"]
    assert query.decisions == []
    assert query.state.graph.stage(JOINED).decisions == ()


def test_switched_off_nothing_is_split() -> None:
    query = Query(JOIN, OFF)
    assert query.join(SKEWED) == ["3.0", "3.1", "3.2"]
    assert query.decisions == []


def test_a_large_partition_is_divided_by_the_tasks_that_wrote_it() -> None:
    query = Query(JOIN, ON)
    assert query.join(SKEWED) == ["3.0", "3.1", "3.2", "3.3", "3.4"]
    stage = query.state.stage(JOINED)
    assert stage.layout == ((0,), (1,), (1,), (1,), (2,))
    assert stage.portions == (None, Portion(2, 0, 1), Portion(2, 1, 2), Portion(2, 2, 3), None)
    (decision,) = query.decisions
    assert decision == SkewDecision(JOINED, decision.reason, True)
    assert decision.reason == ("split: partition 1 of stage 2 (largest 1,400 bytes, median 30), divided among 3 tasks")
    assert query.state.graph.stage(JOINED).decisions == (decision.reason,)


def test_every_probe_row_is_read_once_and_the_build_side_by_every_task() -> None:
    query = Query(JOIN, ON)
    query.join(SKEWED)
    tasks = range(len(query.state.stage(JOINED).tasks))
    probed = [path for task in tasks for path in query.reads(task, PROBE)]
    everything = [f"/{TaskKey('q', PROBE, task)}/{partition}" for task in range(3) for partition in range(3)]
    assert sorted(probed) == sorted(everything)
    built = [f"/{TaskKey('q', BUILD, task)}/1" for task in range(2)]
    assert [query.reads(task, BUILD) for task in (1, 2, 3)] == [built] * 3


def test_tasks_that_wrote_little_are_read_together() -> None:
    query = Query(JOIN, replace(ON, bytes_per_partition=700))
    query.join([[10, 200, 10], [10, 500, 10], [10, 600, 10]])
    assert query.state.stage(JOINED).portions[1:3] == (Portion(2, 0, 2), Portion(2, 2, 3))


def test_a_portion_has_at_least_as_many_bytes_as_the_build_side() -> None:
    query = Query(JOIN, ON)
    query.join(SKEWED, build=[[1, 450, 1], [1, 450, 1]])
    assert query.state.stage(JOINED).portions[1:3] == (Portion(2, 0, 2), Portion(2, 2, 3))


@pytest.mark.parametrize(
    ("policy", "probe", "build", "sql", "reason"),
    [
        (ON, [[9, 0, 9], [9, 1400, 9], [9, 0, 9]], [[1] * 3] * 2, JOIN, "too few tasks wrote it"),
        (ON, SKEWED, [[1, 800, 1]] * 2, JOIN, "too few tasks wrote it"),
        (ON, EVEN, [[1, 800, 1]] * 2, JOIN, "these rows are not the probe side of the join"),
        (ON, SKEWED, [[1] * 3] * 2, LEFT, "this join type checks each build-side row against all probe rows"),
        (replace(ON, unsplit="frames are elsewhere"), SKEWED, [[1] * 3] * 2, JOIN, "frames are elsewhere"),
    ],
    ids=["one producer", "a large build side", "a skewed build side", "a left join", "the runner"],
)
def test_why_a_large_partition_is_not_split(
    policy: Policy, probe: list[list[int]], build: list[list[int]], sql: str, reason: str
) -> None:
    query = Query(sql, policy)
    assert query.join(probe, build) == ["3.0", "3.1", "3.2"]
    (decision,) = query.decisions
    assert not decision.split
    assert decision.reason.startswith("not split: partition 1 of stage ")
    assert reason in decision.reason
    assert query.state.graph.stage(JOINED).decisions == (decision.reason,)
    assert query.state.stage(JOINED).portions == ()


def test_small_partitions_beside_a_split_one_are_merged() -> None:
    query = Query(JOIN, replace(ON, merge_small_partitions=True))
    assert query.join([[500, 10, 10], [500, 10, 10], [500, 10, 10]]) == ["3.0", "3.1", "3.2", "3.3"]
    assert query.state.stage(JOINED).layout == ((0,), (0,), (0,), (1, 2))
    assert query.state.stage(JOINED).portions[3] is None


def test_a_wide_stage_with_a_split_partition_has_tasks_of_one_partition() -> None:
    query = Query(JOIN, ON)
    wide = replace(query.state.graph.stage(JOINED), partitions_per_task=2)
    query.state = replace(query.state, graph=query.state.graph.with_stage(wide))
    query.join(SKEWED)
    assert not query.state.stage(JOINED).apart
    assert query.state.stage(JOINED).layout == ((0,), (1,), (1,), (1,), (2,))


def test_readers_of_a_gather_read_all_of_its_tasks() -> None:
    query = Query(SORTED, ON)
    query.join(SKEWED)
    assert _groups_of_head(query.state.graph) == 5


def _groups_of_head(graph: StageGraph) -> int:
    (source,) = [node for node in walk(decode(graph.head.plan or b"")) if exchange_of(node) == JOINED]
    return len(source.arrow_scan.base_conf.file_groups)


def test_output_that_is_lost_comes_back_into_the_same_portion() -> None:
    query = Query(JOIN, ON)
    query.join(SKEWED)
    assert query.tell(OutputLost(PROBE, 1, 0)) == ["2.1"]
    key = TaskKey("q", PROBE, 1, 1)
    files = tuple(FrameFile(f"/{key}/{name}", 1, 1, 200) for name in ("a", "b"))
    query.tell(TaskSucceeded(key, Manifest(key, files)))
    assert query.reads(2, PROBE) == [f"/{key}/a", f"/{key}/b"]
    assert query.reads(1, PROBE) == [f"/{TaskKey('q', PROBE, 0)}/1"]
    assert len(query.decisions) == 1
