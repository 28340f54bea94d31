"""Whether a plan certainly returns no rows, because some of the exchanges that it reads are empty (docs/adr/0028)."""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache

from sparkfusion.ids import ExchangeId
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.wire import PlanNode, body, children, decode, kind
from sparkfusion.plan.wire import wire_pb2 as pb

_GIVE_NONE_FOR_NONE = frozenset(
    {
        "projection", "filter", "coalesce_batches", "cooperative", "coalesce_partitions", "sort_preserving_merge",
        "repartition", "sort", "local_limit", "global_limit", "window", "unnest", "buffer",
    }
)  # fmt: skip
_EITHER = frozenset({pb.INNER, pb.LEFT_SEMI, pb.RIGHT_SEMI})
_LEFT = frozenset({pb.LEFT, pb.LEFT_ANTI, pb.LEFT_MARK})
_RIGHT = frozenset({pb.RIGHT, pb.RIGHT_ANTI, pb.RIGHT_MARK})


@lru_cache(maxsize=8)
def gives_no_rows(plan: bytes, empty: frozenset[ExchangeId]) -> bool:
    """Whether an encoded plan returns no rows if these exchanges are empty, whatever its other leaves return."""
    return _gives_none(decode(plan), empty)


def _gives_none(node: PlanNode, empty: Set[ExchangeId]) -> bool:
    name = kind(node)
    if exchange_of(node) is not None:
        return exchange_of(node) in empty
    if name in _GIVE_NONE_FOR_NONE:
        return _gives_none(body(node).input, empty)
    if name == "aggregate":
        return _has_only_groups_of_rows(node.aggregate) and _gives_none(node.aggregate.input, empty)
    if name in ("union", "interleave"):
        return all(_gives_none(child, empty) for child in children(node))
    if name == "cross_join":
        return any(_gives_none(child, empty) for child in children(node))
    if name in ("hash_join", "nested_loop_join", "sort_merge_join"):
        return _joins_to_none(node, empty)
    return False


def _has_only_groups_of_rows(aggregate: pb.Aggregate) -> bool:
    """Whether every group has rows. An aggregate without GROUP BY, and the empty set of GROUPING SETS, have a group
    without rows."""
    return bool(aggregate.group_expr) and not aggregate.has_grouping_set and not any(aggregate.groups)


def _joins_to_none(node: PlanNode, empty: Set[ExchangeId]) -> bool:
    type = body(node).join_type
    left, right = (_gives_none(child, empty) for child in children(node))
    if type in _EITHER:
        return left or right
    if type in _LEFT:
        return left
    if type in _RIGHT:
        return right
    return type == pb.FULL and left and right
