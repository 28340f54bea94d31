"""Turn shuffle joins into broadcast joins while the query runs (docs/adr/0024).

The build side is then read whole by every task, and the probe side is not shuffled at all: its stage and the stage of
the join become one. Each task then has probe rows of any key. That is correct only if the join does not return
unmatched rows of the build side, and if nothing above it relies on equal keys being in one task.
"""

from __future__ import annotations

from dataclasses import replace

from sparkfusion.ids import ExchangeId, StageId
from sparkfusion.plan.build_sides import ROW_WISE, is_partition_wise
from sparkfusion.plan.determinism import has_fetch
from sparkfusion.plan.feed_scans import feeds_read
from sparkfusion.plan.joins import BUILD_EMITTING, collects_left, emits_build_rows
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.stage import ExchangeKind, ShuffleJoin, Stage, StageGraph
from sparkfusion.plan.task_counts import may_have_any_tasks, with_groups
from sparkfusion.plan.wire import PlanNode, children, copy_of, decode, encode, kind
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import coalesce
from sparkfusion.plan.wire.depth import check_depth


def find_shuffle_joins(graph: StageGraph) -> StageGraph:
    """The same graph, in which each stage says whether its join may become a broadcast join. Called after the cut."""
    plans = {stage.id: decode(stage.plan) for stage in graph.stages}
    finder = _ShuffleJoinFinder(graph, plans)
    return replace(graph, stages=tuple(replace(each, shuffle_join=finder.find(each)) for each in graph.stages))


def broadcast_build_side(graph: StageGraph, number: StageId, decision: str) -> StageGraph:
    """The graph with the shuffle join of a stage as a broadcast join. The stage of the probe side becomes part of it.

    Every exchange and every other stage keeps its number. Raises `PlanTooDeepError` if the two plans together cannot
    be decoded.
    """
    stage = graph.stage(number)
    assert stage.shuffle_join is not None
    probe = graph.producer_of(stage.shuffle_join.probe)
    root = decode(stage.plan)
    join = _partitioned_join(root)
    assert join is not None
    join.partition_mode = pb.COLLECT_LEFT
    build_source, probe_source = source_below(join.left), source_below(join.right)
    build_source.CopyFrom(coalesce(copy_of(build_source)))
    probe_source.CopyFrom(decode(probe.plan).repartition.input)
    plan = encode(root)
    check_depth(plan)
    fused = replace(
        stage,
        plan=plan,
        task_count=probe.task_count,
        partitions_per_task=min(stage.partitions_per_task, probe.partitions_per_task),
        inputs=tuple(dict.fromkeys((*probe.inputs, *(e for e in stage.inputs if e != probe.output)))),
        mergeable=stage.mergeable and probe.mergeable,
        deterministic=stage.deterministic and probe.deterministic,
        scan_bytes=stage.scan_bytes + probe.scan_bytes,
        shuffle_join=None,
        collects=(*probe.collects, *stage.collects, stage.shuffle_join.build),
        decisions=(*probe.decisions, decision),
    )
    kept = replace(
        graph.with_stage(fused),
        exchanges=tuple(exchange for exchange in graph.exchanges if exchange.id != probe.output),
    )
    kept = replace(kept, stages=tuple(each for each in kept.stages if each.id != probe.id))
    return with_groups(kept, stage.output, probe.task_count)


class _ShuffleJoinFinder:
    """Finds such joins in the stages of a graph, whose plans are decoded once; lives for one call."""

    def __init__(self, graph: StageGraph, plans: dict[StageId, PlanNode]) -> None:
        self._graph = graph
        self._plans = plans
        self._bytes: dict[ExchangeId, int | None] = {}
        for stage in graph.stages:
            below = [self._bytes[exchange] for exchange in stage.inputs]
            known = [size for size in below if size is not None]
            sized = len(known) == len(below) and not feeds_read(plans[stage.id])
            self._bytes[stage.output] = stage.scan_bytes + sum(known) if sized else None

    def find(self, stage: Stage) -> ShuffleJoin | None:
        join = _partitioned_join(self._plans[stage.id])
        if join is None or join.null_aware or join.join_type in BUILD_EMITTING:
            return None
        build, probe = exchange_of(source_below(join.left)), exchange_of(source_below(join.right))
        if build is None or probe is None or not (self._is_shuffle(build) and self._is_shuffle(probe)):
            return None
        if not (self._may_be_absorbed(probe) and may_have_any_tasks(self._graph, stage, self._plans.__getitem__)):
            return None
        built, probed = self._bytes[build], self._bytes[probe]
        return ShuffleJoin(build, probe, built is not None and probed is not None and built <= probed)

    def _is_shuffle(self, exchange: ExchangeId) -> bool:
        return self._graph.exchange(exchange).kind is ExchangeKind.SHUFFLE

    def _may_be_absorbed(self, probe: ExchangeId) -> bool:
        """Whether the stage of the probe side may become part of the join's stage: it is deterministic, reads no feed,
        and only the join reads its rows."""
        producer = self._graph.producer_of(probe)
        readers = [stage for stage in self._graph.stages if probe in stage.inputs]
        alone = len(readers) == 1 and probe not in self._graph.head.inputs
        return alone and producer.deterministic and not feeds_read(self._plans[producer.id])


def _partitioned_join(root: PlanNode) -> pb.HashJoin | None:
    """The hash join of shuffled sides above which nothing relies on how rows are partitioned; None if there is none."""
    node = root.repartition.input if kind(root) == "repartition" else root
    while kind(node) != "hash_join" or collects_left(node):
        if emits_build_rows(node) or not is_partition_wise(node):
            return None
        node = children(node)[-1]  # the probe side of a join that collects its left side
    return node.hash_join


def source_below(node: PlanNode) -> PlanNode:
    """The first node below operators that pass rows one by one or sort a partition: usually a scan."""
    while (kind(node) in ROW_WISE or (kind(node) == "sort" and is_partition_wise(node))) and not has_fetch(node):
        (node,) = children(node)
    return node
