"""How the groups of an aggregate are divided among its partitions."""

from __future__ import annotations

from sparkfusion.plan.wire import kind
from sparkfusion.plan.wire import wire_pb2 as pb


def partitioned_by_groups(aggregate: pb.Aggregate) -> bool:
    """Whether its groups are complete and not sorted, and hashing its rows by all group columns gives the same
    partitions.

    Rows may also be partitioned by some of the group columns only: by `a` below an aggregate by `(a, b)`. Operators
    above it may rely on that, such as a join by `a`. See docs/traps.md#partitioned-by-a-part-of-the-group.
    """
    if aggregate.mode not in (pb.FINAL_PARTITIONED, pb.SINGLE_PARTITIONED) or kind(aggregate.input) != "repartition":
        return False
    below = aggregate.input.repartition
    keys = list(below.partitioning.hash.hash_expr)
    return not below.preserve_order and bool(keys) and keys == list(aggregate.group_expr)
