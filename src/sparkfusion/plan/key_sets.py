"""Key sets: compute the keys of small, filtered tables first, and reduce the scans of large tables with them.

A scan that is reduced keeps only the rows whose key is in the set, before they are shuffled, joined or aggregated. It
does so by a right semi join with the broadcast set, so exactly the rows without such a key are left out. A reduced
table may be the source of the next key set. See docs/adr/0027-key-sets-reduce-large-scans.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sparkfusion.ids import ExchangeId
from sparkfusion.plan.column_lineage import Relation, SchemaOf, Transfer, find_transfers, group_columns
from sparkfusion.plan.determinism import is_volatile
from sparkfusion.plan.join_rows import JoinRows
from sparkfusion.plan.key_set_choice import KeySetChoice, KeySetPolicy, may_pay, values_of
from sparkfusion.plan.sources import exchange_of, exchanges_read
from sparkfusion.plan.stage import KeySet, StageGraph
from sparkfusion.plan.wire import PlanNode, children, copy_of, decode, encode, kind, partition_count
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import coalesce, cooperative, hash_repartition, projection

Materialize = Callable[[PlanNode, KeySet], PlanNode]
"""Makes a stage of a plan, and returns a scan of its rows."""


def insert_key_sets(root: PlanNode, schema_of: SchemaOf, materialize: Materialize, policy: KeySetPolicy) -> None:
    """Reduce the scans of a plan by key sets where that probably pays, in place. Called before the plan is cut."""
    if not may_pay(root, policy):
        return
    if is_volatile(root):  # a source that is read twice might return different rows
        return
    transfers = find_transfers(root, schema_of, shuffles=policy.shuffles)
    if transfers:
        _Insertion(KeySetChoice(transfers, policy, JoinRows(root)), materialize).run()


class _Insertion:
    """Makes stages of the chosen sources, and puts their key sets above the scans that they reduce."""

    def __init__(self, choice: KeySetChoice, materialize: Materialize) -> None:
        self._choice = choice
        self._materialize = materialize
        self._scans: dict[Relation, tuple[PlanNode, list[int]]] = {}

    def run(self) -> None:
        for relation in self._choice.sources:
            self._make_source(relation)
        for transfer in self._choice.reductions:
            self._reduce(transfer.target.relation.node, transfer)

    def _make_source(self, relation: Relation) -> None:
        columns = self._choice.used_columns(relation)
        known = [values for each in columns if (values := values_of(relation, each)) is not None]
        names = tuple(relation.schema.names[each] for each in columns)
        key_set = KeySet(
            columns=names,
            values=min(known, default=None),
            most=self._choice.most_keys(relation),
            filtered=self._choice.filtered_keys(relation),
        )
        if relation.aggregate:
            for transfer in self._choice.reductions_before(relation):
                self._reduce(transfer.target.relation.node, transfer)
            partitions, keys = (
                partition_count(relation.node),
                [_column(relation, each) for each in group_columns(relation)],
            )
            scan = self._materialize(copy_of(relation.node), key_set)
            relation.node.CopyFrom(hash_repartition(scan, keys, partitions) if partitions > 1 else coalesce(scan))
            self._scans[relation] = scan, list(range(len(relation.schema)))
            return
        plan = copy_of(relation.node)
        for transfer in self._choice.reductions_before(relation):
            self._reduce(plan, transfer)
        named = projection(plan, ((relation.schema.names[each], _column(relation, each)) for each in columns))
        self._scans[relation] = self._materialize(named, key_set), columns

    def _reduce(self, node: PlanNode, transfer: Transfer) -> None:
        """Keep only the rows of the node whose key is in the set, in place."""
        source, target = transfer.source, transfer.target
        scan, columns = self._scans[source.relation]
        made = pb.PlanNode()
        join = made.hash_join
        join.left.CopyFrom(coalesce(scan))
        join.right.CopyFrom(node)
        on = join.on.add()
        on.left.column.name = source.relation.schema.names[source.column]
        on.left.column.index = columns.index(source.column)
        on.right.CopyFrom(_column(target.relation, target.column))
        join.join_type = pb.RIGHT_SEMI
        join.partition_mode = pb.COLLECT_LEFT
        reduced = cooperative(made)
        node.CopyFrom(cooperative(reduced) if self._choice.only_filters(transfer) else reduced)


def _column(relation: Relation, index: int) -> pb.Expr:
    return pb.Expr(column=pb.Column(name=relation.schema.names[index], index=index))


@dataclass(frozen=True)
class Reduction:
    """A scan that a key set reduces.

    Attributes:
        exchange: the exchange of the key set. `key`: the key's column in it.
        reduced: the plan below the semi join. `column`: its column whose values must be among the keys.
        changes: whether the semi join also projects columns or has a limit.
    """

    exchange: ExchangeId
    key: int
    reduced: PlanNode
    column: int
    changes: bool


def reduction_of(node: PlanNode) -> Reduction | None:
    """The reduction that a node does; None if it does none. A semi join of the query itself with rows of another stage
    counts too.

    A join in which NULL equals NULL is not a reduction, because it keeps rows without a key.
    """
    if kind(node) != "cooperative" or kind(node.cooperative.input) != "hash_join":
        return None
    join = node.cooperative.input.hash_join
    if join.join_type != pb.RIGHT_SEMI or join.null_equality != pb.NULL_EQUALS_NOTHING:
        return None
    if kind(join.left) != "coalesce_partitions":
        return None
    exchange = exchange_of(join.left.coalesce_partitions.input)
    if exchange is None or len(join.on) != 1:
        return None
    (on,) = join.on
    if not (on.left.HasField("column") and on.right.HasField("column")):
        return None
    changes = bool(join.projection) or join.HasField("fetch")
    return Reduction(exchange, on.left.column.index, join.right, on.right.column.index, changes)


def _filter_of(node: PlanNode) -> Reduction | None:
    """The reduction of a node that only decodes fewer rows. Two cooperative operators, one above the other, mark it;
    DataFusion never plans that."""
    return reduction_of(node.cooperative.input) if kind(node) == "cooperative" else None


def below_reductions(node: PlanNode) -> PlanNode:
    """The node below all reductions at the top of a plan. A semi join of the query that has a limit or a projection
    ends the search."""
    while (found := reduction_of(node) or _filter_of(node)) is not None and not found.changes:
        node = found.reduced
    return node


def drop_key_set(graph: StageGraph, exchange: ExchangeId, *, only_filters: bool = False) -> StageGraph:
    """The graph without reductions by this key set. Other consumers of its rows stay as they are.

    Args:
        only_filters: drop only the reductions whose scans gain nothing but decoding fewer rows.
    """

    def find(node: PlanNode) -> Reduction | None:
        found = _filter_of(node) or (None if only_filters else reduction_of(node))
        return found if found is not None and found.exchange == exchange else None

    def drop(node: PlanNode) -> PlanNode:
        while (found := find(node)) is not None:
            node.CopyFrom(copy_of(found.reduced))
        for child in children(node):
            drop(child)
        return node

    for stage in graph.stages:
        if exchange in stage.inputs:
            root = drop(decode(stage.plan))
            graph = graph.with_stage(replace(stage, plan=encode(root), inputs=exchanges_read(root)))
    head = graph.head
    if head.plan is not None and exchange in head.inputs:
        root = drop(decode(head.plan))
        graph = replace(graph, head=replace(head, plan=encode(root), inputs=exchanges_read(root)))
    return graph
