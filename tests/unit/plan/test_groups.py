from __future__ import annotations

import pytest

from sparkfusion.plan.groups import partitioned_by_groups
from sparkfusion.plan.wire import PlanNode
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import coalesce, hash_repartition


def column(index: int) -> pb.Expr:
    return pb.Expr(column=pb.Column(name="abc"[index], index=index))


def aggregate(below: PlanNode, mode: int) -> pb.Aggregate:
    """By the first two columns."""
    return pb.Aggregate(group_expr=[column(0), column(1)], mode=pb.AggregateMode.Name(mode), input=below)


def hashed(*columns: int, preserve_order: bool = False) -> PlanNode:
    made = hash_repartition(PlanNode(), [column(index) for index in columns], 4)
    made.repartition.preserve_order = preserve_order
    return made


@pytest.mark.parametrize(
    ("below", "mode", "same"),
    [
        (hashed(0, 1), pb.FINAL_PARTITIONED, True),
        (hashed(0, 1), pb.SINGLE_PARTITIONED, True),
        (hashed(0, 1), pb.PARTIAL, False),
        (hashed(0), pb.SINGLE_PARTITIONED, False),
        (hashed(1, 0), pb.SINGLE_PARTITIONED, False),
        (hashed(0, 1, preserve_order=True), pb.FINAL_PARTITIONED, False),
        (coalesce(PlanNode()), pb.FINAL_PARTITIONED, False),
    ],
    ids=["final", "single", "partial", "a part", "another order of keys", "rows in order", "merged"],
)
def test_partitions_by_all_of_the_group_are_told_from_others(below: PlanNode, mode: int, same: bool) -> None:
    assert partitioned_by_groups(aggregate(below, mode)) is same
