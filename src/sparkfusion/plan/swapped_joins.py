"""Swap the sides of shuffle joins when their exact sizes are known (docs/adr/0028).

The build side is held in memory, so it should be the smaller one. Each task still has the same rows of both sides, and
gives the same rows. Only their order differs, so a join whose probe side is sorted stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sparkfusion.errors import InternalError
from sparkfusion.ids import ExchangeId
from sparkfusion.plan.build_sides import swap_sides
from sparkfusion.plan.determinism import has_fetch
from sparkfusion.plan.joins import collects_left
from sparkfusion.plan.projections import NO_COLUMN
from sparkfusion.plan.shuffle_joins import source_below
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.stage import StageGraph
from sparkfusion.plan.wire import PlanNode, children, decode, encode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb


@dataclass(frozen=True)
class JoinSides:
    """The exchanges that the two sides of a join read."""

    build: ExchangeId
    probe: ExchangeId


def swap_joins(
    graph: StageGraph, plan: bytes, is_better: Callable[[JoinSides], bool]
) -> tuple[bytes, tuple[JoinSides, ...]]:
    """The stage's plan with the sides of some joins swapped, and these sides as they were before.

    Args:
        is_better: whether the two sides should be swapped. It is called only where swapping leaves the answer as it is.
    """
    root = decode(plan)
    swapped = []
    for join in _shuffle_joins(root):
        build, probe = exchange_of(source_below(join.left)), exchange_of(source_below(join.right))
        if build is None or probe is None or not _may_be_swapped(join):
            continue
        if is_better(JoinSides(build, probe)):
            swap_sides(join, lambda side: _width(side, graph))
            swapped.append(JoinSides(build, probe))
    return (encode(root) if swapped else plan), tuple(swapped)


def _shuffle_joins(root: PlanNode) -> Iterator[pb.HashJoin]:
    for node in walk(root):
        if kind(node) == "hash_join" and not collects_left(node):
            yield node.hash_join


def _may_be_swapped(join: pb.HashJoin) -> bool:
    """Whether the join gives the same rows with its sides swapped, and nothing relies on their order."""
    sorts = any(kind(node) == "sort" for node in walk(join.right))
    return not join.null_aware and not join.HasField("fetch") and not sorts


def _width(node: PlanNode, graph: StageGraph) -> int:
    """The number of columns of a side, which is the scan of an exchange below operators that pass rows one by one."""
    exchange = exchange_of(node)
    if exchange is not None:
        return len(graph.exchange(exchange).column_names)
    if kind(node) == "projection":
        return len(pb.Projection.FromString(node.projection.SerializeToString()).expr_name)
    if kind(node) == "filter" and node.filter.projection:
        return sum(index != NO_COLUMN for index in node.filter.projection)
    if kind(node) == "hash_join" or has_fetch(node) or len(children(node)) != 1:
        raise InternalError(f"the columns of {kind(node)} are not known here")
    return _width(children(node)[0], graph)
