"""Joins with feeds and Spark DataFrames, whose sizes sparkfusion knows and DataFusion does not.

If one side is known to be small, it is broadcast to every task. Otherwise both sides are shuffled, and the smaller one
becomes the build side, which is held in memory.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkfusion.plan.feed_scans import feed_of
from sparkfusion.plan.joins import BUILD_EMITTING, collects_left
from sparkfusion.plan.projections import NO_COLUMN
from sparkfusion.plan.table_parts import parts_of
from sparkfusion.plan.wire import PlanNode, children, copy_of, file_scan_conf, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import coalesce

ROW_WISE = frozenset({"projection", "filter", "coalesce_batches", "cooperative"})
_PARTITION_WISE = ROW_WISE | {"local_limit", "unnest"}
_COLLECTABLE_RIGHT = {
    pb.INNER: pb.INNER,
    pb.LEFT: pb.RIGHT,
    pb.LEFT_SEMI: pb.RIGHT_SEMI,
    pb.LEFT_ANTI: pb.RIGHT_ANTI,
    pb.LEFT_MARK: pb.RIGHT_MARK,
}
_SWAPPED = {
    **_COLLECTABLE_RIGHT,
    **{after: before for before, after in _COLLECTABLE_RIGHT.items()},
    pb.FULL: pb.FULL,
}
_BOTH_SIDES = frozenset({pb.INNER, pb.LEFT, pb.RIGHT, pb.FULL})
_ORDERED = frozenset({"sort", "sort_preserving_merge", "sort_merge_join", "window"})
_WORTH_IT = 2  # the left side must be this many times larger before sides are swapped: sizes are guesses


def choose_build_sides(
    root: PlanNode, is_small: Callable[[PlanNode], bool], width: Callable[[PlanNode], int], *, free: bool = True
) -> None:
    """Turn shuffled joins with a small scan into joins that collect the scan. In the others, make the smaller side the
    build side. In place.

    Args:
        is_small: whether a scan is known to be small enough to broadcast.
        width: how many columns a part of the plan has.
        free: whether nothing above relies on how the join's rows are partitioned.
    """
    if kind(root) == "hash_join" and root.hash_join.partition_mode == pb.PARTITIONED:
        join = root.hash_join
        if not (free and _collect_small_side(join, is_small, width)):
            _build_on_smaller_side(join, width)
    for index, child in enumerate(children(root)):
        choose_build_sides(child, is_small, width, free=_is_free(root, index, free))


def is_partition_wise(node: PlanNode) -> bool:
    """Whether the node handles each partition of its last input separately, and any division of rows into partitions is
    right."""
    name = kind(node)
    if name == "aggregate":
        return bool(node.aggregate.mode == pb.PARTIAL)
    if name == "sort":
        return bool(node.sort.preserve_partitioning)
    return name in _PARTITION_WISE or collects_left(node)


def _is_free(node: PlanNode, child: int, free: bool) -> bool:
    """Whether it does not matter how the rows of a child are partitioned."""
    name = kind(node)
    if name in ("repartition", "coalesce_partitions", "sort_preserving_merge") or (collects_left(node) and child == 0):
        return True
    if name == "sort" and not node.sort.preserve_partitioning:
        return True
    return free and is_partition_wise(node)


def _collect_small_side(
    join: pb.HashJoin, is_small: Callable[[PlanNode], bool], width: Callable[[PlanNode], int]
) -> bool:
    if join.null_aware or kind(join.left) != "repartition" or kind(join.right) != "repartition":
        return False
    if is_small(_leaf(join.right.repartition.input)) and join.join_type in _COLLECTABLE_RIGHT:
        swap_sides(join, width)
    elif not is_small(_leaf(join.left.repartition.input)) or join.join_type in BUILD_EMITTING:
        return False
    join.left.CopyFrom(coalesce(join.left.repartition.input))
    join.right.CopyFrom(copy_of(join.right.repartition.input))
    join.partition_mode = pb.COLLECT_LEFT
    return True


def _leaf(node: PlanNode) -> PlanNode:
    """The scan below row-wise operators; the node itself if there is none."""
    while kind(node) in ROW_WISE:
        (node,) = children(node)
    return node


def _build_on_smaller_side(join: pb.HashJoin, width: Callable[[PlanNode], int]) -> None:
    """Make the smaller side the build side. An ordered right side is not swapped, because a join keeps its order."""
    sides = (join.left, join.right)
    if join.null_aware or not any(parts_of(node) for side in sides for node in walk(side)):
        return
    left, right = _estimated_bytes(join.left), _estimated_bytes(join.right)
    if left is None or right is None or right * _WORTH_IT > left or _may_be_ordered(join.right):
        return
    swap_sides(join, width)


def _estimated_bytes(node: PlanNode) -> int | None:
    """An upper estimate of a node's output in bytes; None if the size of a feed is not known."""
    conf = file_scan_conf(node)
    if conf is not None:
        size = sum(file.size for group in conf.file_groups for file in group.files)
        return None if feed_of(node) is not None and not size else size
    if kind(node) == "memory_scan":
        return sum(len(rows) for rows in node.memory_scan.partitions)
    found = [_estimated_bytes(child) for child in children(node)]
    known = [size for size in found if size is not None]
    if len(known) < len(found):
        return None
    return sum(known) if kind(node) in ("union", "interleave") else max(known, default=0)


def _may_be_ordered(side: PlanNode) -> bool:
    scans = [conf for node in walk(side) if (conf := file_scan_conf(node)) is not None]
    ordered = any(conf.output_ordering for conf in scans)
    return ordered or any(kind(node) in _ORDERED or kind(node) == "memory_scan" for node in walk(side))


def swap_sides(join: pb.HashJoin, width: Callable[[PlanNode], int]) -> None:
    """Swap the inputs of the join; rows and columns stay the same."""
    left, right = width(join.left), width(join.right)
    if join.join_type in _BOTH_SIDES:
        given = list(join.projection) or list(range(left + right))
        moved = [index if index == NO_COLUMN else index + right if index < left else index - left for index in given]
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
