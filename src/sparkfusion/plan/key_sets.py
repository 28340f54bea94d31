"""Key sets: the keys of small, filtered tables are computed first, and reduce the scans of large ones.

A scan that is reduced keeps only the rows whose key is in the set, before they are shuffled, joined or aggregated. It
does so by a right semi join with the broadcast set, so no row too many and no row too few is left out. A reduced table
may be the source of the next key set. See docs/adr/0027-key-sets-reduce-large-scans.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sparkfusion.ids import ExchangeId
from sparkfusion.plan.column_lineage import (
    Relation,
    RelationColumn,
    SchemaOf,
    Transfer,
    base_node,
    base_scan,
    find_transfers,
    group_columns,
    has_filter,
)
from sparkfusion.plan.determinism import is_volatile
from sparkfusion.plan.scan_statistics import most_filter_keys, most_values, projected_bytes, row_count, scanned_column
from sparkfusion.plan.sizing import calls_python
from sparkfusion.plan.sources import exchange_of, exchanges_read
from sparkfusion.plan.stage import KeySet, StageGraph
from sparkfusion.plan.wire import (
    PlanNode,
    copy_of,
    decode,
    encode,
    file_scan_conf,
    kind,
    partition_count,
    rewrite,
    walk,
)
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import coalesce, cooperative, hash_repartition, projection

Materialize = Callable[[PlanNode, KeySet], PlanNode]
"""Makes a stage of a plan, and returns a scan of its rows."""

_LARGER = 2
"""A target has to have that many times the rows of its source, and to read that many times the bytes. The source is
read twice, for its keys and for its rows."""
_WORTH_A_STAGE = 4
"""A target has to read that many times `least_bytes` if its source is read only for the keys. Measured with TPC-H at
scale 1, where targets read 20 to 60 MB: a stage for such keys costs about what it saves."""
_MUCH_LARGER = 8
"""A target has to read that many times the bytes of its source if all that it gains is to decode fewer rows. How many
keys are left is known only when the source has been read."""
_UNIQUE = 2
"""Keys may come that many times in a source. If they come more often, a filter leaves most of them."""


@dataclass(frozen=True)
class KeySetPolicy:
    """When key sets are used.

    Attributes:
        least_bytes: scans that read less are not reduced, and scans that read little more only by groups.
        forced: key sets are used wherever that is right, whatever it costs. For tests.
        shuffles: repartitioned rows are shuffled between tasks; otherwise one task keeps them in memory.
    """

    least_bytes: int
    forced: bool = False
    shuffles: bool = True


def insert_key_sets(root: PlanNode, schema_of: SchemaOf, materialize: Materialize, policy: KeySetPolicy) -> None:
    """Reduce the scans of a plan by key sets where that probably pays, in place. Called before the plan is cut."""
    if is_volatile(root):  # a source that is read twice would give other rows
        return
    transfers = find_transfers(root, schema_of, shuffles=policy.shuffles)
    if transfers:
        _Insertion(_Choice(transfers, policy), materialize).run()


class _Choice:
    """Which transfers are used. Sources go from the smallest relation to the largest."""

    def __init__(self, transfers: list[Transfer], policy: KeySetPolicy) -> None:
        self._policy = policy
        relations = dict.fromkeys(each for t in transfers for each in (t.source.relation, t.target.relation))
        self._bytes = {each: _bytes_read(each) for each in relations}
        self._ranks = {each: rank for rank, each in enumerate(sorted(relations, key=self._order))}
        self._selective = {each: policy.forced or has_filter(each) for each in relations}
        self._at_once = [t for t in transfers if not t.saves and self._is_large(t.target.relation)]
        self._usable = [t for t in transfers if self._may_use(t)]
        self._incoming = {each: self._reductions_of(each) for each in sorted(relations, key=self._ranks.__getitem__)}
        found = [t for t in self._usable if self._pays(t)]
        sources = self._sources_for(found)
        self.reductions = [t for t in found if t.target.relation.inside not in sources]
        self.sources = [each for each in self._sources_for(self.reductions) if each in sources]

    def incoming(self, relation: Relation) -> list[Transfer]:
        """The reductions of a relation before it is a source itself, or of what it computes itself from."""
        if not relation.aggregate:
            return self._incoming[relation]
        inner = [each for each in self._incoming if each.inside is relation]
        return [t for each in inner for t in self._incoming[each] if self._pays(t)]

    def only_filters(self, transfer: Transfer) -> bool:
        """Whether all that its target gains is to decode fewer rows: the join with the source is the next operator."""
        return not transfer.saves and self._is_large(transfer.target.relation)

    def most_keys(self, relation: Relation) -> int | None:
        """How many keys of a source still are few for the scans that only decode fewer rows for them."""
        found = [t for t in self.reductions if t.source.relation is relation and self.only_filters(t)]
        return min((_most_filter_keys(t.target) for t in found), default=None)

    def used_columns(self, relation: Relation) -> list[int]:
        """The columns of a source that key sets are made of."""
        used = [t for source in self.sources for t in self.incoming(source)] + self.reductions
        return sorted({t.source.column for t in used if t.source.relation is relation})

    def _order(self, relation: Relation) -> tuple[int, bool]:
        return self._bytes[relation], relation.aggregate

    def _may_use(self, transfer: Transfer) -> bool:
        if calls_python(encode(transfer.source.relation.node)):
            return False
        return self._policy.forced or _is_nearly_unique(transfer.source)

    def _reductions_of(self, relation: Relation) -> list[Transfer]:
        """By sources before it. Called in the order of the relations, because a reduced relation becomes selective."""
        rank = self._ranks[relation]
        found = [t for t in self._usable if t.target.relation is relation]
        found = [t for t in found if self._ranks[t.source.relation] < rank and self._selective[t.source.relation]]
        self._selective[relation] = self._selective[relation] or bool(found)
        return found

    def _is_large(self, relation: Relation) -> bool:
        return self._bytes[relation] >= self._policy.least_bytes * _WORTH_A_STAGE

    def _pays(self, transfer: Transfer) -> bool:
        source, target = transfer.source.relation, transfer.target.relation
        if self._policy.forced:
            return self._ranks[source] < self._ranks[target] or source.aggregate
        if not self._selective[source]:
            return False
        if source.aggregate:
            return transfer.saves and self._bytes[target] >= self._policy.least_bytes
        if self._reduces_at_once(target):
            return self._ranks[source] < self._ranks[target]
        if not transfer.saves:
            much_larger = self._bytes[source] * _MUCH_LARGER <= self._bytes[target]
            return much_larger and self._is_large(target) and _most_filter_keys(transfer.target) > 0
        if not self._is_large(target) or self._is_reduced_at_once(target, source):
            return False
        return _is_larger(self._bytes[target], self._bytes[source]) and _has_more_rows(target, source)

    def _reduces_at_once(self, relation: Relation) -> bool:
        """Whether a large scan is joined with this small relation first of all. The fewer rows it has, the fewer rows
        of the scan go on, and to reduce it costs little."""
        return not self._is_large(relation) and any(t.source.relation is relation for t in self._at_once)

    def _is_reduced_at_once(self, target: Relation, source: Relation) -> bool:
        """Whether the first join of a scan leaves few of its rows, so that looking for the keys of each row of the scan
        costs more than it saves: it is a join with a smaller selective relation."""
        first = [t.source.relation for t in self._at_once if t.target.relation is target]
        return any(self._selective[each] and self._bytes[each] <= self._bytes[source] for each in first)

    def _sources_for(self, found: list[Transfer]) -> list[Relation]:
        """The sources of these reductions, and the sources that reduce those, in the order in which they run."""
        needed: dict[Relation, None] = {}
        waiting = [t.source.relation for t in found]
        while waiting:
            relation = waiting.pop()
            if relation not in needed:
                needed[relation] = None
                waiting += [t.source.relation for t in self.incoming(relation)]
        return sorted(needed, key=self._ranks.__getitem__)


class _Insertion:
    """Makes stages of the chosen sources, and puts their key sets above the scans that they reduce."""

    def __init__(self, choice: _Choice, materialize: Materialize) -> None:
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
        known = [values for each in columns if (values := _values(relation, each)) is not None]
        names = tuple(relation.schema.names[each] for each in columns)
        key_set = KeySet(names, min(known, default=None), self._choice.most_keys(relation))
        if relation.aggregate:
            for transfer in self._choice.incoming(relation):
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
        for transfer in self._choice.incoming(relation):
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


def _bytes_read(relation: Relation) -> int:
    """Of an aggregate, what its largest scan reads: as a target, that one counts."""
    scans = [conf for node in walk(relation.node) if (conf := file_scan_conf(node)) is not None]
    return max(map(projected_bytes, scans), default=0)


def _is_larger(target: int, source: int) -> bool:
    return source * _LARGER <= target


def _has_more_rows(target: Relation, source: Relation) -> bool:
    """Whether its files have more rows, however many columns are read: no table is the source for itself."""
    rows, fewer = row_count(base_scan(target)), row_count(base_scan(source))
    return rows is not None and fewer is not None and _is_larger(rows, fewer)


def _values(relation: Relation, column: int) -> int | None:
    """How many different values a column of a source has at most, without its filters; None if that is not known."""
    scanned = None if relation.aggregate else scanned_column(relation.node, column)
    return None if scanned is None else most_values(base_scan(relation), scanned)


def _most_filter_keys(target: RelationColumn) -> int:
    """How many keys a scan of Parquet files may look for while it decodes; 0 if it cannot."""
    scan, scanned = base_node(target.relation), scanned_column(target.relation.node, target.column)
    return (
        most_filter_keys(scan.parquet_scan.base_conf, scanned)
        if kind(scan) == "parquet_scan" and scanned is not None
        else 0
    )


def _is_nearly_unique(key: RelationColumn) -> bool:
    """Whether few rows of a source have the same key, so that few rows have few keys."""
    if key.relation.aggregate:
        return group_columns(key.relation) == [key.column]
    values, rows = _values(key.relation, key.column), row_count(base_scan(key.relation))
    return values is not None and rows is not None and values * _UNIQUE >= rows


@dataclass(frozen=True)
class Reduction:
    """A scan that a key set reduces.

    Attributes:
        exchange: of the key set. `key`: the column of its rows.
        reduced: the scan, with what is below the semi join. `column`: which of its columns has to be one of the keys.
    """

    exchange: ExchangeId
    key: int
    reduced: PlanNode
    column: int


def reduction_of(node: PlanNode) -> Reduction | None:
    """What a node reduces, if it does. A semi join of the query itself, with rows of another stage, is one as well."""
    if kind(node) != "cooperative" or kind(node.cooperative.input) != "hash_join":
        return None
    join = node.cooperative.input.hash_join
    if join.join_type != pb.RIGHT_SEMI or kind(join.left) != "coalesce_partitions":
        return None
    exchange = exchange_of(join.left.coalesce_partitions.input)
    if exchange is None or len(join.on) != 1:
        return None
    (on,) = join.on
    if not (on.left.HasField("column") and on.right.HasField("column")):
        return None
    return Reduction(exchange, on.left.column.index, join.right, on.right.column.index)


def _filter_of(node: PlanNode) -> Reduction | None:
    """What a node reduces only to decode fewer rows. Two cooperative operators, one above the other, mark such a
    reduction; DataFusion does not plan that."""
    return reduction_of(node.cooperative.input) if kind(node) == "cooperative" else None


def drop_key_set(graph: StageGraph, exchange: ExchangeId, *, only_filters: bool = False) -> StageGraph:
    """The graph in which no scan is reduced by this key set. Other readers of its rows stay as they are.

    Args:
        only_filters: only scans that would decode fewer rows for it, and gain nothing else, are not reduced.
    """

    def drop(node: PlanNode) -> PlanNode | None:
        reduction = _filter_of(node) if only_filters else reduction_of(node)
        return copy_of(reduction.reduced) if reduction is not None and reduction.exchange == exchange else None

    for stage in graph.stages:
        if exchange in stage.inputs:
            root = rewrite(decode(stage.plan), drop)
            graph = graph.with_stage(replace(stage, plan=encode(root), inputs=exchanges_read(root)))
    head = graph.head
    if head.plan is not None and exchange in head.inputs:
        root = rewrite(decode(head.plan), drop)
        graph = replace(graph, head=replace(head, plan=encode(root), inputs=exchanges_read(root)))
    return graph
