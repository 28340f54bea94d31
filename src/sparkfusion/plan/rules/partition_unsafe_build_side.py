"""A collected-left hash join records matched build rows per plan instance, so isolated probe tasks lose rows.

See docs/traps.md#matched-rows-of-a-collected-join.
"""

from __future__ import annotations

from sparkfusion.plan.gate import NotDistributableError
from sparkfusion.plan.joins import emits_build_rows
from sparkfusion.plan.row_order import may_be_ordered, nodes_with_order_need
from sparkfusion.plan.wire import PlanNode, kind, partition_count
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import hash_repartition


def partition_unsafe_build_side(root: PlanNode) -> PlanNode:
    """Make such joins partitioned, with both sides shuffled by their keys. Null-aware joins stay for the next rule."""
    for node, order_needed in nodes_with_order_need(root):
        if kind(node) != "hash_join" or node.hash_join.null_aware or not emits_build_rows(node):
            continue
        partitions = partition_count(node.hash_join.right)
        if partitions == 1:
            continue
        if order_needed and may_be_ordered(node.hash_join.right):
            raise NotDistributableError(
                "the query relies on the sort order of a join's input, and tasks do not keep it"
            )
        _make_partitioned(node.hash_join, partitions)
    return root


def _make_partitioned(join: pb.HashJoin, partitions: int) -> None:
    left = join.left
    if kind(left) == "coalesce_partitions" and not left.coalesce_partitions.HasField("fetch"):
        left = left.coalesce_partitions.input
    shuffled_left = hash_repartition(left, (on.left for on in join.on), partitions)
    shuffled_right = hash_repartition(join.right, (on.right for on in join.on), partitions)
    join.left.CopyFrom(shuffled_left)
    join.right.CopyFrom(shuffled_right)
    join.partition_mode = pb.PARTITIONED
