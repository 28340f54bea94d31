"""Find the shuffle of a stage that may be split, so that several tasks read parts of one partition (docs/adr/0028).

Each of these tasks joins its part of the probe side's rows with all rows that the build sides have in that partition.
That is correct only if each output row comes from one probe row, so no join on the way may return unmatched rows of its
build side. And nothing above the joins may rely on equal keys being in one task.
"""

from __future__ import annotations

from sparkfusion.ids import ExchangeId
from sparkfusion.plan.build_sides import ROW_WISE, is_partition_wise
from sparkfusion.plan.determinism import has_fetch, is_volatile
from sparkfusion.plan.feed_scans import feeds_read
from sparkfusion.plan.joins import BUILD_EMITTING, collects_left, emits_build_rows
from sparkfusion.plan.shuffle_joins import source_below
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.stage import ExchangeKind, Stage, StageGraph
from sparkfusion.plan.task_counts import may_have_any_tasks
from sparkfusion.plan.wire import PlanNode, children, decode, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb


class NotSplittableError(Exception):
    """The partitions of a stage must not be split. The message says why, as the end of a sentence."""


def find_split_side(graph: StageGraph, stage: Stage) -> ExchangeId:
    """The shuffle of the probe side, whose partitions may be split. Raises `NotSplittableError` if there is none."""
    root = decode(stage.plan)
    if stage.whole or not stage.mergeable or feeds_read(root):
        raise NotSplittableError("the stage also reads something that is not a shuffle")
    node = _below_joins(root.repartition.input if kind(root) == "repartition" else root)
    exchange = exchange_of(node)
    if exchange is None or graph.exchange(exchange).kind is not ExchangeKind.SHUFFLE:
        raise NotSplittableError(f"the probe side of the join is not only a shuffle: {_name(node)}")
    if sum(exchange_of(each) == exchange for each in walk(root)) > 1:
        raise NotSplittableError("the stage reads these rows twice")
    if any(graph.exchange(each).kind is ExchangeKind.FORWARD for each in stage.inputs):
        raise NotSplittableError("one task must see all rows of its feed")
    if not may_have_any_tasks(graph, stage, lambda number: decode(graph.stage(number).plan)):
        raise NotSplittableError("splitting would add tasks, and a later stage needs exactly the planned number")
    return exchange


def _below_joins(node: PlanNode) -> PlanNode:
    """The node below the joins at the top of a plan, reached through their probe sides."""
    while not _is_shuffle_join(node):
        if emits_build_rows(node):
            raise NotSplittableError("a join above checks each build-side row against all probe rows")
        if exchange_of(node) is not None or not is_partition_wise(node):
            raise NotSplittableError(f"the {_name(node)} needs all rows of a key in one task")
        node = children(node)[-1]
    _check_join(node.hash_join)
    node = node.hash_join.right
    while _passes_rows(node):
        if _is_shuffle_join(node):
            _check_join(node.hash_join)
        node = children(node)[-1]
    return node


def _passes_rows(node: PlanNode) -> bool:
    """Whether each row of the node comes from one row of its last input, independent of the other rows."""
    if has_fetch(node) or emits_build_rows(node):
        return False
    sorts = kind(node) == "sort" and is_partition_wise(node)
    return kind(node) in ROW_WISE or sorts or kind(node) == "hash_join" or collects_left(node)


def _check_join(join: pb.HashJoin) -> None:
    if join.null_aware:
        raise NotSplittableError("the NOT IN join has to see all rows of a partition")
    if join.join_type in BUILD_EMITTING:
        raise NotSplittableError(
            "this join type checks each build-side row against all probe rows, so its probe side cannot be split"
        )
    if exchange_of(source_below(join.left)) is None:
        raise NotSplittableError(f"the build side of the join is not only a shuffle: {_name(source_below(join.left))}")
    if is_volatile(join.left):
        raise NotSplittableError("the build side contains a volatile expression, so tasks could read different rows")


def _is_shuffle_join(node: PlanNode) -> bool:
    return kind(node) == "hash_join" and not collects_left(node)


def _name(node: PlanNode) -> str:
    return kind(node).replace("_", " ")
