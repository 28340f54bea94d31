"""One task's plan: the stage's plan restricted to the partitions of that task.

The result has one partition (below a shuffle's repartition at the root), or in a wide stage those of the task. Each
task decodes its own instance, which shares nothing with the instances of the other tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkfusion.errors import InternalError
from sparkfusion.ids import ExchangeId, FeedId
from sparkfusion.plan.feed_scans import feeds_read
from sparkfusion.plan.joins import collects_left
from sparkfusion.plan.sources import exchange_of, groups_read
from sparkfusion.plan.stage import Stage
from sparkfusion.plan.void import void
from sparkfusion.plan.wire import (
    PlanNode,
    body,
    children,
    copy_of,
    decode,
    encode,
    file_scan_conf,
    kind,
    partition_count,
)
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import coalesce, local_limit, union

Partitions = tuple[int, ...]


@dataclass(frozen=True)
class IsolatedPlan:
    """A task's encoded plan, the groups of exchanges that its placeholders stand for, and the feed that it reads."""

    plan: bytes
    groups: tuple[tuple[ExchangeId, int], ...]
    feed: FeedId | None = None


def isolate(stage: Stage, partitions: Partitions, *, apart: bool = False) -> IsolatedPlan:
    """The plan of the task of `stage` that computes `partitions`.

    The task's plan has one partition for all of them (several only if the stage is mergeable). With `apart`, which
    needs a wide stage, it has a partition for each.
    """
    if stage.whole:
        return IsolatedPlan(stage.plan, groups_read(decode(stage.plan)) if stage.inputs else ())
    root = decode(stage.plan)
    below = root.repartition.input if kind(root) == "repartition" else root
    keep_apart(below, partitions) if apart else restrict(below, partitions)
    feeds = feeds_read(root)
    if len(feeds) > 1:
        raise InternalError("a task would read several feeds")
    return IsolatedPlan(encode(root), groups_read(root), feeds[0] if feeds else None)


def restrict(node: PlanNode, partitions: Partitions) -> None:
    """Keep only what these partitions of the node need, in place."""
    name = kind(node)
    conf = file_scan_conf(node)
    if conf is not None:
        kept = [file for p in partitions for file in conf.file_groups[p].files] if conf.file_groups else []
        del conf.file_groups[:]
        conf.file_groups.add().files.extend(kept)
    elif name == "memory_scan" and node.memory_scan.partitions:
        kept_rows = node.memory_scan.partitions[partitions[0]]
        del node.memory_scan.partitions[:]
        node.memory_scan.partitions.append(kept_rows)
    elif name in ("empty", "placeholder_row"):
        body(node).partitions = 1
    elif name == "union":
        _restrict_union(node, partitions)
    elif name == "interleave":
        _restrict_interleave(node, partitions)
    elif name in ("coalesce_partitions", "sort_preserving_merge"):
        _restrict_merge(body(node).input)
    elif collects_left(node):
        restrict(body(node).left, (0,))
        restrict(body(node).right, partitions)
    else:
        for child in children(node):
            restrict(child, partitions if partition_count(child) == partition_count(node) else (0,))


def keep_apart(node: PlanNode, partitions: Partitions) -> None:
    """Keep only what these partitions of the node need, each as a partition of its own, in place.

    The left side of a join that collects it stays whole: the task computes it once for all its partitions.
    """
    name, count = kind(node), partition_count(node)
    conf = file_scan_conf(node)
    if conf is not None:
        groups = [pb.FileGroup.FromString(conf.file_groups[p].SerializeToString()) for p in partitions]
        del conf.file_groups[:]
        conf.file_groups.extend(groups)
    elif name == "memory_scan":
        kept_rows = [node.memory_scan.partitions[p] for p in partitions]
        del node.memory_scan.partitions[:]
        node.memory_scan.partitions.extend(kept_rows)
    elif not children(node) or name in ("union", "interleave", "coalesce_partitions", "sort_preserving_merge"):
        raise InternalError(f"the partitions of {name} cannot be kept apart in one task")
    elif collects_left(node):
        restrict(body(node).left, (0,))
        keep_apart(body(node).right, partitions)
    else:
        for child in children(node):
            if partition_count(child) != count:
                raise InternalError(f"an input of {name} has {partition_count(child)} partitions and not {count}")
            keep_apart(child, partitions)


def _restrict_merge(child: PlanNode) -> None:
    """The input of a merge is one partition, or an exchange source whose groups are all read."""
    if partition_count(child) == 1:
        restrict(child, (0,))
    elif exchange_of(child) is None:
        raise InternalError(f"a merge of {partition_count(child)} partitions was left inside a stage")


def _restrict_union(node: PlanNode, partitions: Partitions) -> None:
    """Each partition of a union belongs to one child. The other children keep their schema and return no rows."""
    (wanted,) = partitions
    inputs = []
    for child in node.union.inputs:
        count = partition_count(child)
        if 0 <= wanted < count:
            restrict(child, (wanted,))
            inputs.append(copy_of(child))
        else:
            inputs.append(local_limit(coalesce(void(child)), 0))
        wanted -= count
    node.CopyFrom(coalesce(union(inputs)))


def _restrict_interleave(node: PlanNode, partitions: Partitions) -> None:
    """Replace an interleave by a merged union, which gives the same rows: an interleave requires a declared hash
    partitioning, which exchange sources lack."""
    for child in node.interleave.inputs:
        restrict(child, partitions)
    node.CopyFrom(coalesce(union(node.interleave.inputs)))
