"""Joins with a feed that is said to be small: its rows go whole to every task, instead of both sides being shuffled.

DataFusion knows no sizes of feeds, so it plans such a join as one of two large tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sparkfusion.plan.feeds import FeedId, feed_of
from sparkfusion.plan.joins import BUILD_EMITTING, collects_left
from sparkfusion.plan.wire import PlanNode, children, copy_of, kind
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import coalesce

_ROW_WISE = frozenset({"projection", "filter", "coalesce_batches", "cooperative"})
_KEEPS_NO_PARTITIONING = _ROW_WISE | {"local_limit", "unnest"}
_SWAPPED = {
    pb.INNER: pb.INNER,
    pb.LEFT: pb.RIGHT,
    pb.LEFT_SEMI: pb.RIGHT_SEMI,
    pb.LEFT_ANTI: pb.RIGHT_ANTI,
    pb.LEFT_MARK: pb.RIGHT_MARK,
}
_BOTH_SIDES = frozenset({pb.INNER, pb.LEFT})
_NOTHING = 2**32 - 1  # how the format spells a projection to no column at all


def broadcast_small_feeds(
    root: PlanNode, small: Collection[FeedId], width: Callable[[PlanNode], int], *, free: bool = True
) -> None:
    """Turn shuffled joins with these feeds into joins that collect them, in place.

    Args:
        width: how many columns a part of the plan has.
        free: whether nothing above counts on how the join's rows are partitioned.
    """
    if kind(root) == "hash_join" and free and root.hash_join.partition_mode == pb.PARTITIONED:
        _collect_small_side(root.hash_join, small, width)
    for index, child in enumerate(children(root)):
        broadcast_small_feeds(child, small, width, free=_is_free(root, index, free))


def _is_free(node: PlanNode, child: int, free: bool) -> bool:
    """Whether the rows of a child may come in any partitions."""
    name = kind(node)
    if name in ("repartition", "coalesce_partitions", "sort_preserving_merge"):
        return True
    if collects_left(node):
        return child == 0 or free
    if name == "aggregate":
        return bool(node.aggregate.mode == pb.PARTIAL)
    if name == "sort":
        return not node.sort.preserve_partitioning or free
    return name in _KEEPS_NO_PARTITIONING and free


def _collect_small_side(join: pb.HashJoin, small: Collection[FeedId], width: Callable[[PlanNode], int]) -> None:
    if join.null_aware or kind(join.left) != "repartition" or kind(join.right) != "repartition":
        return
    if _is_small(join.right.repartition.input, small) and join.join_type in _SWAPPED:
        _swap(join, width)
    elif not _is_small(join.left.repartition.input, small) or join.join_type in BUILD_EMITTING:
        return
    join.left.CopyFrom(coalesce(join.left.repartition.input))
    join.right.CopyFrom(copy_of(join.right.repartition.input))
    join.partition_mode = pb.COLLECT_LEFT


def _is_small(node: PlanNode, small: Collection[FeedId]) -> bool:
    while kind(node) in _ROW_WISE:
        (node,) = children(node)
    return feed_of(node) in small


def _swap(join: pb.HashJoin, width: Callable[[PlanNode], int]) -> None:
    """The same rows and columns with the inputs the other way round."""
    left, right = width(join.left), width(join.right)
    if join.join_type in _BOTH_SIDES:
        given = list(join.projection) or list(range(left + right))
        moved = [index if index == _NOTHING else index + right if index < left else index - left for index in given]
        join.projection[:] = moved
    for column in join.filter.column_indices:
        column.side = 1 - column.side
    for each in join.on:
        keep = pb.Expr.FromString(each.left.SerializeToString())
        each.left.CopyFrom(each.right)
        each.right.CopyFrom(keep)
    join.join_type = _SWAPPED[join.join_type]
    old_left = copy_of(join.left)
    join.left.CopyFrom(join.right)
    join.right.CopyFrom(old_left)
