from __future__ import annotations

import pytest

from sparkfusion.plan.gate import NotDistributableError
from sparkfusion.plan.joins import BUILD_EMITTING
from sparkfusion.plan.rules.partition_unsafe_build_side import partition_unsafe_build_side
from sparkfusion.plan.wire import PlanNode
from sparkfusion.plan.wire import wire_pb2 as pb
from tests.unit.plan.plans import find, plan, shape, tree

JOIN = "select u.v, t.v as w from u join t on t.k = u.k"
COLLECTED = tree("""
    hash_join x3
      coalesce_partitions
        memory_scan x2
      memory_scan x3
""")


def join_of(join_type: pb.JoinType, *, null_aware: bool = False) -> PlanNode:
    join = find(plan(JOIN), "hash_join")
    join.hash_join.join_type = join_type
    join.hash_join.null_aware = null_aware
    assert shape(join) == COLLECTED
    return join


@pytest.mark.parametrize("join_type", sorted(BUILD_EMITTING), ids=pb.JoinType.Name)
def test_joins_that_emit_build_rows_become_partitioned(join_type: pb.JoinType) -> None:
    after = partition_unsafe_build_side(join_of(join_type))
    assert shape(after) == tree("""
        hash_join x3
          repartition x3
            memory_scan x2
          repartition x3
            memory_scan x3
    """)
    assert after.hash_join.partition_mode == pb.PARTITIONED
    left, right = after.hash_join.left.repartition, after.hash_join.right.repartition
    assert left.partitioning.hash.hash_expr == [on.left for on in after.hash_join.on]
    assert right.partitioning.hash.hash_expr == [on.right for on in after.hash_join.on]


@pytest.mark.parametrize("join_type", sorted(set(pb.JoinType.values()) - BUILD_EMITTING), ids=pb.JoinType.Name)
def test_other_joins_stay(join_type: pb.JoinType) -> None:
    assert shape(partition_unsafe_build_side(join_of(join_type))) == COLLECTED


def test_null_aware_joins_are_left_to_the_next_rule() -> None:
    assert shape(partition_unsafe_build_side(join_of(pb.LEFT_ANTI, null_aware=True))) == COLLECTED


def test_a_limit_on_the_left_side_stays() -> None:
    join = join_of(pb.LEFT)
    join.hash_join.left.coalesce_partitions.fetch = 5
    after = partition_unsafe_build_side(join)
    assert shape(after.hash_join.left) == tree("""
        repartition x3
          coalesce_partitions
            memory_scan x2
    """)


def test_one_probe_partition_is_safe() -> None:
    join = join_of(pb.LEFT)
    del join.hash_join.right.memory_scan.partitions[1:]
    assert partition_unsafe_build_side(join).hash_join.partition_mode == pb.COLLECT_LEFT


def test_an_order_that_is_needed_is_not_lost() -> None:
    join = join_of(pb.LEFT)
    join.hash_join.right.memory_scan.sort_information.add()
    merge = PlanNode()
    merge.sort_preserving_merge.input.CopyFrom(join)
    with pytest.raises(NotDistributableError, match="sort order of a join's input"):
        partition_unsafe_build_side(merge)
