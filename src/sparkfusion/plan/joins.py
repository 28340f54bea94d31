"""Which joins isolated tasks may run, by type (docs/traps.md#joins)."""

from __future__ import annotations

from sparkfusion.plan.wire import PlanNode, kind
from sparkfusion.plan.wire import wire_pb2 as pb

BUILD_EMITTING = frozenset({pb.LEFT, pb.FULL, pb.LEFT_SEMI, pb.LEFT_ANTI, pb.LEFT_MARK})
"""Join types that return rows of the left (build) side depending on the matches in *all* probe partitions."""


def collects_left(node: PlanNode) -> bool:
    """Whether every task of the join needs its left input whole."""
    name = kind(node)
    if name == "hash_join":
        return node.hash_join.partition_mode != pb.PARTITIONED
    return name in ("nested_loop_join", "cross_join")


def emits_build_rows(node: PlanNode) -> bool:
    """Whether a collected-left join would lose or repeat build rows if its probe partitions ran in separate tasks."""
    name = kind(node)
    if name == "hash_join":
        return collects_left(node) and (node.hash_join.null_aware or node.hash_join.join_type in BUILD_EMITTING)
    return name == "nested_loop_join" and node.nested_loop_join.join_type in BUILD_EMITTING
