"""Move row-wise operators below a gather, where they run in every task and while rows stream to the caller."""

from __future__ import annotations

from sparkfusion.plan.wire import PlanNode, body, copy_of, kind, partition_count, rewrite


def push_rowwise_below_gather(root: PlanNode) -> PlanNode:
    """Swap projections and filters with the merge of partitions right below them, repeatedly."""
    return rewrite(root, _swap)


def _swap(node: PlanNode) -> PlanNode | None:
    if not _is_rowwise(node):
        return None
    merge = body(node).input
    if kind(merge) != "coalesce_partitions" or partition_count(merge.coalesce_partitions.input) == 1:
        return None
    if kind(node) == "filter" and merge.coalesce_partitions.HasField("fetch"):
        return None
    lowered = copy_of(node)
    body(lowered).input.CopyFrom(merge.coalesce_partitions.input)
    made = copy_of(merge)
    made.coalesce_partitions.input.CopyFrom(lowered)
    return made


def _is_rowwise(node: PlanNode) -> bool:
    name = kind(node)
    return name == "projection" or (name == "filter" and not node.filter.HasField("fetch"))
