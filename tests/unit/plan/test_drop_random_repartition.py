from __future__ import annotations

from sparkfusion.plan.rules.drop_random_repartition import drop_random_repartition
from sparkfusion.plan.wire.build import coalesce, hash_repartition
from sparkfusion.plan.wire.wire_pb2 import PlanNode
from tests.unit.plan.plans import plan, shape, tree


def spread(node: PlanNode, partitions: int) -> PlanNode:
    made = PlanNode()
    made.repartition.input.CopyFrom(node)
    made.repartition.partitioning.round_robin = partitions
    return made


def test_a_round_robin_repartition_gives_way_to_its_input() -> None:
    before = coalesce(spread(spread(plan("select k from t"), 7), 5))
    assert shape(before) == tree("""
        coalesce_partitions
          repartition x5
            repartition x7
              memory_scan x3
    """)
    assert shape(drop_random_repartition(before)) == tree("""
        coalesce_partitions
          memory_scan x3
    """)


def test_a_hash_repartition_stays() -> None:
    before = hash_repartition(spread(plan("select k from t"), 7), [], 4)
    assert shape(drop_random_repartition(before)) == tree("""
        repartition x4
          memory_scan x3
    """)
