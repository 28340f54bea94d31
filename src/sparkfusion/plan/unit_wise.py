"""Which operators may run over a few work units at a time (docs/adr/0009-feeds-are-functions-of-units.md).

For the operators above, the combined results of several runs over parts of the input must be as good as those of one
run over all of it. Examples are filters and projections, partial aggregates that are merged later, and limits that
another limit above repeats.
"""

from __future__ import annotations

from sparkfusion.plan.feed_scans import feeds_read
from sparkfusion.plan.joins import collects_left, emits_build_rows
from sparkfusion.plan.wire import PlanNode, children, kind
from sparkfusion.plan.wire import wire_pb2 as pb

_UNIT_WISE = frozenset({"projection", "filter", "coalesce_batches", "cooperative", "local_limit", "unnest", "union"})


def split_inputs(node: PlanNode) -> list[PlanNode]:
    """The inputs that read a feed and must be cut off, because the node has to see all of their rows at once."""
    return [child for index, child in enumerate(children(node)) if feeds_read(child) and not _is_unit_wise(node, index)]


def _is_unit_wise(node: PlanNode, child: int) -> bool:
    name = kind(node)
    if name in _UNIT_WISE:
        return True
    if name == "aggregate":
        return bool(node.aggregate.mode == pb.PARTIAL)
    if name == "repartition":
        return bool(node.repartition.partitioning.WhichOneof("method") == "hash")
    return collects_left(node) and child == 1 and not emits_build_rows(node)
