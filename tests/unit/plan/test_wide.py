"""Wide tasks: several partitions of a stage in one plan, each kept apart, and the stages that have none."""

from __future__ import annotations

import pytest
from datafusion import SessionContext
from datafusion.plan import ExecutionPlan

from sparkfusion.errors import InternalError
from sparkfusion.plan.distribute import distribute
from sparkfusion.plan.isolate import isolate, keep_apart
from sparkfusion.plan.schema import SchemaProbe
from sparkfusion.plan.sources import exchange_source
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.wide import widen
from sparkfusion.plan.wire import PlanNode, copy_of, encode, partition_count
from sparkfusion.plan.wire.build import coalesce, union
from tests.unit.plan.plans import NO_BROADCAST, context, find, plan, shape, tree


def slice_of(node: PlanNode, *partitions: int) -> PlanNode:
    made = copy_of(node)
    keep_apart(made, partitions)
    return made


def keys_of(node: PlanNode) -> list[list[object]]:
    """The first column of every partition, when all of them run in one instance."""
    made = SessionContext()
    decoded = ExecutionPlan.from_bytes(made, encode(node))
    streams = [made.execute(decoded, partition) for partition in range(partition_count(node))]
    return [sorted(value for frame in each for value in frame.to_pyarrow().column(0).to_pylist()) for each in streams]


def graph_of(sql: str, options: dict[str, str] | None = None) -> StageGraph:
    return widen(distribute(plan(sql, options), SchemaProbe(context(options))), 2, 2)


def test_a_slice_of_a_scan_keeps_its_partitions_apart() -> None:
    whole = plan("select k, v from t where k >= 0")
    assert keys_of(slice_of(whole, 0, 1)) == [[0, 1], [1, 2]]
    assert keys_of(slice_of(whole, 2)) == [[2, 3]]


def test_a_slice_reads_groups_of_exchanges_one_by_one() -> None:
    source = slice_of(exchange_source(4, 5, b"", 0), 1, 3)
    paths = [[file.path for file in group.files] for group in source.arrow_scan.base_conf.file_groups]
    assert paths == [["sparkfusion-exchange/4/1"], ["sparkfusion-exchange/4/3"]]


def test_the_left_side_of_a_collecting_join_is_there_once() -> None:
    whole = find(plan("select t.v, u.v as w from u join t on u.k < t.k"), "nested_loop_join")
    whole.nested_loop_join.left.CopyFrom(coalesce(exchange_source(1, 4, b"", 0)))
    assert shape(slice_of(whole, 0, 2)) == tree("""
        nested_loop_join x2
          coalesce_partitions
            arrow_scan x4
          memory_scan x2
    """)


@pytest.mark.parametrize("sql", ["select k from t union all select k from u", "select 1 as k"])
def test_what_cannot_be_kept_apart_is_a_defect_of_ours(sql: str) -> None:
    with pytest.raises(InternalError, match="cannot be kept apart"):
        keep_apart(plan(sql), (0, 1))
    with pytest.raises(InternalError, match="cannot be kept apart"):
        keep_apart(coalesce(union([plan("select k from t")])), (0, 1))


def test_both_sides_of_a_shuffle_are_wide_and_what_streams_is_not() -> None:
    graph = graph_of("select t.v, u.v from t join u on t.k = u.k", NO_BROADCAST)
    assert [stage.partitions_per_task for stage in graph.stages] == [1, 2, 1]  # the first has one for each task
    assert [(stage.task_count, stage.planned_tasks) for stage in graph.stages] == [(2, 2), (3, 2), (3, 3)]
    assert graph.wide
    assert graph.task_count == 7


def test_a_stage_below_a_sorted_merge_is_wide() -> None:
    graph = graph_of("select k, count(*) as n from t group by k order by k")
    assert [stage.partitions_per_task for stage in graph.stages] == [2, 2]


def test_a_union_is_not_wide() -> None:
    graph = graph_of("select k, count(*) from (select k from t union all select k from u) group by k")
    assert not graph.wide


def test_a_wide_task_of_a_shuffle_has_as_many_inputs_as_partitions() -> None:
    (stage, _) = graph_of("select k, count(*) as n from t group by k order by k").stages
    made = SessionContext()
    decoded = ExecutionPlan.from_bytes(made, isolate(stage, (0, 1), apart=True).plan)
    assert decoded.partition_count == 3
    assert decoded.children()[0].partition_count == 2
