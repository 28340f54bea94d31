from __future__ import annotations

import pytest

from sparkfusion.plan.gate import NotDistributableError
from sparkfusion.plan.joins import BUILD_EMITTING
from sparkfusion.plan.rules.gather_unsafe_probe_side import gather_unsafe_probe_side
from sparkfusion.plan.wire import PlanNode
from sparkfusion.plan.wire import wire_pb2 as pb
from tests.unit.plan.plans import find, plan, shape, tree

NESTED_LOOP = "select u.v, t.v as w from u join t on t.k < u.k"
BEFORE = tree("""
    nested_loop_join x3
      coalesce_partitions
        memory_scan x2
      memory_scan x3
""")
AFTER = tree("""
    nested_loop_join
      coalesce_partitions
        memory_scan x2
      coalesce_partitions
        memory_scan x3
""")


def nested_loop(join_type: pb.JoinType) -> PlanNode:
    join = find(plan(NESTED_LOOP), "nested_loop_join")
    join.nested_loop_join.join_type = join_type
    assert shape(join) == BEFORE
    return join


@pytest.mark.parametrize("join_type", sorted(BUILD_EMITTING), ids=pb.JoinType.Name)
def test_nested_loop_joins_that_emit_build_rows_get_one_probe(join_type: pb.JoinType) -> None:
    assert shape(gather_unsafe_probe_side(nested_loop(join_type))) == AFTER


@pytest.mark.parametrize("join_type", sorted(set(pb.JoinType.values()) - BUILD_EMITTING), ids=pb.JoinType.Name)
def test_other_nested_loop_joins_stay(join_type: pb.JoinType) -> None:
    assert shape(gather_unsafe_probe_side(nested_loop(join_type))) == BEFORE


def test_null_aware_joins_get_one_probe() -> None:
    root = plan("select v from u where k not in (select k from t)")
    assert find(root, "hash_join").hash_join.null_aware
    gather_unsafe_probe_side(root)
    assert shape(find(root, "hash_join").hash_join.right) == tree("""
        coalesce_partitions
          memory_scan x3
    """)


def test_an_order_that_is_needed_is_not_lost() -> None:
    join = nested_loop(pb.LEFT)
    join.nested_loop_join.right.memory_scan.sort_information.add()
    window = PlanNode()
    window.window.input.CopyFrom(join)
    with pytest.raises(NotDistributableError, match="sort order of a join's input"):
        gather_unsafe_probe_side(window)
