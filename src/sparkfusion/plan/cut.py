"""The cut: split a plan into stages at its exchanges.

It works bottom up. A hash repartition becomes a shuffle, the input of a merge becomes a gather, and the left side of a
collected-left join becomes a broadcast. An exchange source replaces each of them in the plan. The part that is left on
top is the head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

import pyarrow as pa

from sparkfusion.ids import ExchangeId
from sparkfusion.plan.determinism import is_deterministic, may_repeat
from sparkfusion.plan.feed_scans import feeds_read, split_inputs
from sparkfusion.plan.first_stages import FirstStages, make_first_stages
from sparkfusion.plan.gate import NotDistributableError
from sparkfusion.plan.joins import collects_left
from sparkfusion.plan.schema import DescribedSchema
from sparkfusion.plan.shuffle_joins import find_shuffle_joins
from sparkfusion.plan.sizing import scan_bytes
from sparkfusion.plan.sources import exchange_of, exchange_source, exchanges_read
from sparkfusion.plan.stage import Exchange, ExchangeKind, Head, KeySet, Stage, StageGraph
from sparkfusion.plan.wire import PlanNode, body, children, copy_of, encode, file_scan_conf, kind, partition_count
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import local_limit, projection

Describe = Callable[[PlanNode], DescribedSchema]


def cut(root: PlanNode, describe: Describe, first: FirstStages | None = None) -> StageGraph:
    """Cut a plan that passed the gate and the rules. The plan is consumed."""
    cutter = _Cutter(describe)
    if first is not None:
        make_first_stages(root, lambda node: describe(node).arrow, cutter.make_stage, first)
    cutter.cut_below(root)
    if partition_count(root) > 1 or feeds_read(root):
        cutter.gather(root)
    if not cutter.stages:
        raise NotDistributableError("the plan has one partition, so it cannot be split into tasks")
    head = _head_of(root)
    if head.plan is not None:
        describe(root)  # raises if the plan cannot be decoded without the parts that are now below an exchange
    stages = tuple(cutter.stages)
    shared = {exchange for stage in stages if stage.task_count > 1 for exchange in stage.inputs}
    exchanges = tuple(_with_final_kind(exchange, shared) for exchange in cutter.exchanges)
    return find_shuffle_joins(StageGraph(stages, exchanges, head))


def _with_final_kind(exchange: Exchange, shared: Set[ExchangeId]) -> Exchange:
    """`shared`: the exchanges that stages of several tasks read."""
    if exchange.kind is ExchangeKind.GATHER and exchange.id in shared:
        return replace(exchange, kind=ExchangeKind.BROADCAST)
    return exchange


def _head_of(root: PlanNode) -> Head:
    """A plain gather, or a limit over one, needs no plan: its batches go straight to the caller."""
    skip, fetch, node = 0, None, root
    if kind(node) == "global_limit":
        skip = node.global_limit.skip
        fetch = node.global_limit.fetch if node.global_limit.fetch >= 0 else None
        node = node.global_limit.input
    if kind(node) == "coalesce_partitions":
        if node.coalesce_partitions.HasField("fetch"):
            after_skip = max(0, node.coalesce_partitions.fetch - skip)
            fetch = after_skip if fetch is None else min(fetch, after_skip)
        node = node.coalesce_partitions.input
    exchange = exchange_of(node)
    if exchange is not None:
        return Head((exchange,), skip=skip, fetch=fetch)
    return Head(exchanges_read(root), encode(root), deterministic=is_deterministic(root))


class _Cutter:
    """Collects stages and exchanges while a plan is cut; lives for one call of `cut`."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe
        self.stages: list[Stage] = []
        self.exchanges: list[Exchange] = []
        self._key_types: dict[ExchangeId, tuple[pa.DataType, ...]] = {}

    def cut_below(self, node: PlanNode) -> None:
        """Cut everything below the node and, if the node is an exchange, the node itself; in place."""
        for child in children(node):
            self.cut_below(child)
        name = kind(node)
        if name == "repartition":
            self._shuffle(node)
        elif name in ("coalesce_partitions", "sort_preserving_merge"):
            self._gather_input(node)
        elif collects_left(node):
            self._broadcast_left(node)
        for child in split_inputs(node):
            self._forward(child, node)
        if name in ("hash_join", "sort_merge_join", "interleave"):
            self._check_key_types(node)

    def _shuffle(self, node: PlanNode) -> None:
        hashing = node.repartition.partitioning.hash
        described = self._describe(node.repartition.input)
        exchange = self._add_stage(
            node,
            tasks=partition_count(node.repartition.input),
            kind=ExchangeKind.SHUFFLE,
            partitions=hashing.partition_count,
            described=described,
            keys=tuple(_key_name(key) for key in hashing.hash_expr),
        )
        self._key_types[exchange] = self._types_of(hashing.hash_expr, node.repartition.input, described.arrow)
        node.CopyFrom(_source(exchange, hashing.partition_count, described))

    def _gather_input(self, node: PlanNode) -> None:
        child = body(node).input
        if partition_count(child) == 1 and not feeds_read(child):
            return
        if exchange_of(child) is not None and self._is_gathered(child):
            return
        if kind(node) == "coalesce_partitions" and node.coalesce_partitions.HasField("fetch"):
            child.CopyFrom(local_limit(child, node.coalesce_partitions.fetch))
        self.gather(child)

    def _is_gathered(self, source: PlanNode) -> bool:
        exchange = exchange_of(source)
        return any(
            each.id == exchange and each.kind in (ExchangeKind.GATHER, ExchangeKind.BROADCAST)
            for each in self.exchanges
        )

    def gather(self, node: PlanNode) -> None:
        """Make the node a stage of its own. Its consumer reads one file group for each of its tasks."""
        described = self._describe(node)
        tasks = partition_count(node)
        exchange = self._add_stage(node, tasks=tasks, kind=ExchangeKind.GATHER, partitions=1, described=described)
        node.CopyFrom(_source(exchange, tasks, described))

    def make_stage(self, plan: PlanNode, *, key_set: KeySet | None = None, decisions: tuple[str, ...] = ()) -> PlanNode:
        """Make stages of a plan, and return the scan of its rows."""
        self.cut_below(plan)
        self.gather(plan)
        self.exchanges[-1] = replace(self.exchanges[-1], key_set=key_set)
        self.stages[-1] = replace(self.stages[-1], decisions=decisions)
        return plan

    def _forward(self, child: PlanNode, above: PlanNode) -> None:
        """Make the child, which reads a feed, a stage of its own, because the operator above it cannot work unit by
        unit.

        If that operator is a sort with a limit, or a limit, each task already applies the limit to the rows of its own
        units.
        """
        if kind(above) == "global_limit" and above.global_limit.fetch >= 0:
            child.CopyFrom(local_limit(child, above.global_limit.skip + above.global_limit.fetch))
        if kind(above) == "sort" and above.sort.fetch >= 0:
            first_rows = copy_of(above)
            first_rows.sort.preserve_partitioning = True
            child.CopyFrom(first_rows)
        described = self._describe(child)
        tasks = partition_count(child)
        exchange = self._add_stage(child, tasks=tasks, kind=ExchangeKind.FORWARD, partitions=1, described=described)
        child.CopyFrom(_source(exchange, tasks, described))

    def _broadcast_left(self, node: PlanNode) -> None:
        """In a stage of several tasks, or of a feed's units, compute the left side once for all tasks, unless repeating
        it is cheap."""
        left, right = body(node).left, body(node).right
        runs_often = partition_count(right) > 1 or feeds_read(right)
        if feeds_read(left) or (runs_often and not may_repeat(left)):
            self.gather(left)

    def _add_stage(
        self,
        plan: PlanNode,
        *,
        tasks: int,
        kind: ExchangeKind,
        partitions: int,
        described: DescribedSchema,
        keys: tuple[str, ...] = (),
    ) -> ExchangeId:
        number = len(self.stages) + 1
        self.exchanges.append(Exchange(number, kind, number, partitions, tuple(described.arrow.names), keys))
        self.stages.append(
            Stage(
                id=number,
                plan=encode(plan),
                task_count=tasks,
                inputs=exchanges_read(plan),
                output=number,
                mergeable=self._is_mergeable(plan),
                deterministic=is_deterministic(plan),
                scan_bytes=scan_bytes(plan),
            )
        )
        return number

    def _is_mergeable(self, plan: PlanNode) -> bool:
        """Whether a task may run several partitions: each leaf is a shuffle, or is read by every task. Not for
        unions."""
        below = plan.repartition.input if kind(plan) == "repartition" else plan
        if partition_count(below) == 1:
            return False
        return self._partitioned_leaves_are_shuffles(below)

    def _partitioned_leaves_are_shuffles(self, node: PlanNode) -> bool:
        exchange = exchange_of(node)
        if exchange is not None:
            return any(each.id == exchange and each.kind is ExchangeKind.SHUFFLE for each in self.exchanges)
        if file_scan_conf(node) is not None or kind(node) == "union" or not children(node):
            return False
        partitioned = children(node)[1:] if collects_left(node) else children(node)
        return all(self._partitioned_leaves_are_shuffles(child) for child in partitioned)

    def _check_key_types(self, node: PlanNode) -> None:
        """Equal values hash alike only if both sides carry the same physical key type (docs/traps.md#key-types)."""
        if collects_left(node):
            return
        found = {self._key_types[e] for child in children(node) for e in self._shuffles_below(child)}
        if len(found) > 1:
            shown = " and ".join(sorted(str([str(t) for t in types]) for types in found))
            raise NotDistributableError(f"the two sides of a shuffled join have different key types: {shown}")

    def _shuffles_below(self, node: PlanNode) -> list[ExchangeId]:
        exchange = exchange_of(node)
        if exchange is not None:
            return [exchange] if exchange in self._key_types else []
        partitioned = children(node)[1:] if collects_left(node) else children(node)
        return [each for child in partitioned for each in self._shuffles_below(child)]

    def _types_of(self, keys: Sequence[pb.Expr], node: PlanNode, schema: pa.Schema) -> tuple[pa.DataType, ...]:
        if all(key.WhichOneof("kind") == "column" for key in keys):
            return tuple(schema.field(key.column.index).type for key in keys)
        projected = projection(node, ((f"key{index}", key) for index, key in enumerate(keys)))
        return tuple(self._describe(projected).arrow.types)


def _source(exchange: ExchangeId, groups: int, schema: DescribedSchema) -> PlanNode:
    return exchange_source(exchange, groups, schema.encoded, len(schema.arrow), schema.computed)


def _key_name(key: pb.Expr) -> str:
    return key.column.name if key.WhichOneof("kind") == "column" else "expression"
