"""Where the columns of a plan come from, and which rows of a scan a join does not need.

A join needs only those rows of one side whose key is among the keys of the other side, unless it keeps unmatched rows
of that side. This module follows both keys down to scans: the scan whose rows have all possible keys (the source), and
the scan whose other rows can be left out (the target). Nothing is changed here.

A row may be left out of a target only if no output row that can still match depends on it. So a key is followed through
filters, projections, joins, and aggregates that group by it, and never through a limit, a window or a union.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from sparkfusion.plan.build_sides import ROW_WISE
from sparkfusion.plan.determinism import has_fetch
from sparkfusion.plan.feed_scans import feed_of
from sparkfusion.plan.groups import partitioned_by_groups
from sparkfusion.plan.joins import collects_left
from sparkfusion.plan.projections import compute_columns, is_column, project_columns, projection_exprs
from sparkfusion.plan.sources import exchange_of
from sparkfusion.plan.table_parts import parts_of
from sparkfusion.plan.wire import PlanNode, children, file_scan_conf, kind
from sparkfusion.plan.wire import wire_pb2 as pb

SchemaOf = Callable[[PlanNode], pa.Schema]

_SORTS = frozenset({"sort", "sort_preserving_merge"})
_SAME_COLUMNS = _SORTS | {"repartition", "coalesce_batches", "cooperative", "coalesce_partitions", "buffer"}
_BOTH = frozenset({pb.INNER, pb.LEFT, pb.RIGHT, pb.FULL})
_LEFT_ONLY = frozenset({pb.LEFT_SEMI, pb.LEFT_ANTI, pb.LEFT_MARK})
_MARKS = frozenset({pb.LEFT_MARK, pb.RIGHT_MARK})
_MATCHED_ONLY = frozenset({pb.INNER, pb.LEFT_SEMI, pb.RIGHT_SEMI})
"""Joins whose every output row has a match on the other side."""
_RIGHT_REDUCIBLE = _MATCHED_ONLY | {pb.LEFT, pb.LEFT_ANTI, pb.LEFT_MARK}
"""Joins that need no right row without a match on the left side."""
_LEFT_REDUCIBLE = _MATCHED_ONLY | {pb.RIGHT, pb.RIGHT_ANTI, pb.RIGHT_MARK}


@dataclass(frozen=True, eq=False)
class Relation:
    """A scan with the filters and projections above it; or an aggregate with a filter above it.

    Attributes:
        node: the topmost of these operators, as a reference into the plan.
        schema: the schema of its rows.
        aggregate: whether it is an aggregate.
        inside: the aggregate that this scan is a part of, if any.
    """

    node: PlanNode
    schema: pa.Schema
    aggregate: bool = False
    inside: Relation | None = None


@dataclass(frozen=True)
class RelationColumn:
    """A column of a relation."""

    relation: Relation
    column: int

    @property
    def type(self) -> pa.DataType:
        return self.relation.schema.field(self.column).type


@dataclass(frozen=True)
class Transfer:
    """The target needs only rows whose key is among those of the source.

    `saves`: whether rows that are left out would otherwise be shuffled, sorted, aggregated or joined. It is false if
    the join of source and target is the first such operator above the target, because that join drops these rows
    itself.
    """

    source: RelationColumn
    target: RelationColumn
    saves: bool


@dataclass(frozen=True)
class _ColumnLineage:
    """The relations that a column of a node comes from. The values of the column are among the values of each of
    `sources`. If one of `targets` keeps only some values, the rows of the node with these values stay the same.
    `directly` are the targets without a costly operator between them and the node."""

    sources: frozenset[RelationColumn] = frozenset()
    targets: frozenset[RelationColumn] = frozenset()
    directly: frozenset[RelationColumn] = frozenset()

    def drop_direct(self) -> _ColumnLineage:
        return replace(self, directly=frozenset())

    def unite(self, other: _ColumnLineage, *, matched: bool) -> _ColumnLineage:
        """The lineage of a join key that equals `other`, a key of the other side. `matched`: every row of the join has
        a match."""
        sources = self.sources | other.sources if matched else self.sources
        return _ColumnLineage(sources, self.targets | other.targets)


_NOTHING_KNOWN = _ColumnLineage()
_ColumnLineages = list[_ColumnLineage]


def find_transfers(root: PlanNode, schema_of: SchemaOf, *, shuffles: bool = True) -> list[Transfer]:
    """Every transfer of keys that leaves the answer as it is, each once.

    Args:
        shuffles: whether repartitioned rows are shuffled between tasks; otherwise one task keeps them in memory.
    """
    finder = _TransferFinder(schema_of, shuffles)
    finder.visit(root)
    return finder.transfers()


class _TransferFinder:
    """Walks a plan once, children first; lives for one call of `find_transfers`."""

    def __init__(self, schema_of: SchemaOf, shuffles: bool) -> None:
        self._schema_of = schema_of
        self._shuffles = shuffles
        self._saves: dict[tuple[RelationColumn, RelationColumn], bool] = {}
        self._inside: Relation | None = None

    def transfers(self) -> list[Transfer]:
        return [Transfer(source, target, saves) for (source, target), saves in self._saves.items()]

    def visit(self, node: PlanNode) -> _ColumnLineages:
        """What is known about each column of the node."""
        if _is_relation(node):
            return self._of_relation(Relation(node, self._schema_of(node), inside=self._inside))
        if self._inside is None and is_filtered_aggregate(node):
            return self._visit_aggregate_relation(node)
        name = kind(node)
        if not has_fetch(node):
            if name in _SAME_COLUMNS:
                (below,) = map(self.visit, children(node))
                costs = name in _SORTS or (name == "repartition" and self._shuffles)
                return [column.drop_direct() for column in below] if costs else below
            if name == "filter":
                return project_columns(self.visit(node.filter.input), node.filter.projection)
            if name == "projection":
                return compute_columns(self.visit(node.projection.input), projection_exprs(node), _NOTHING_KNOWN)
            if name == "aggregate":
                return self._visit_aggregate(node)
            if name == "hash_join" and not node.hash_join.null_aware:
                return self._visit_join(node)
        for child in children(node):
            self.visit(child)
        return self._unknown(node)

    def _unknown(self, node: PlanNode) -> _ColumnLineages:
        return [_NOTHING_KNOWN] * len(self._schema_of(node))

    def _of_relation(self, relation: Relation) -> _ColumnLineages:
        origins = [frozenset({RelationColumn(relation, index)}) for index in range(len(relation.schema))]
        return [_ColumnLineage(each, each, each) for each in origins]

    def _visit_aggregate_relation(self, node: PlanNode) -> _ColumnLineages:
        """Treat a filtered aggregate as a source: it often gives few rows, and the query computes it anyway."""
        relation = Relation(node, self._schema_of(node), aggregate=True)
        self._inside = relation
        columns = self.visit(node)
        self._inside = None
        origins = [frozenset({RelationColumn(relation, index)}) for index in range(len(columns))]
        return [replace(each, sources=each.sources | own) for each, own in zip(columns, origins, strict=True)]

    def _visit_aggregate(self, node: PlanNode) -> _ColumnLineages:
        below = self.visit(node.aggregate.input)
        unknown = self._unknown(node)
        if not _groups_by_columns(node.aggregate):
            return unknown
        groups = [column.drop_direct() for column in compute_columns(below, node.aggregate.group_expr, _NOTHING_KNOWN)]
        return [*groups, *unknown[len(groups) :]]

    def _visit_join(self, node: PlanNode) -> _ColumnLineages:
        join = node.hash_join
        left, right = self.visit(join.left), self.visit(join.right)
        pairs = _key_pairs(join)
        for in_left, in_right in pairs:
            if join.join_type in _RIGHT_REDUCIBLE:
                self._add(left[in_left], right[in_right], at_once=collects_left(node) or not self._shuffles)
            if join.join_type in _LEFT_REDUCIBLE:
                self._add(right[in_right], left[in_left], at_once=False)
        return project_columns(_join_columns(join.join_type, left, right, pairs), join.projection)

    def _add(self, from_: _ColumnLineage, to: _ColumnLineage, *, at_once: bool) -> None:
        """Record a transfer. `at_once`: the join drops the rows itself as soon as it reads them."""
        for source in from_.sources:
            for target in to.targets:
                if source.type == target.type and not _belong_together(source.relation, target.relation):
                    saves = not (at_once and target in to.directly)
                    self._saves[source, target] = saves or self._saves.get((source, target), False)


def _belong_together(source: Relation, target: Relation) -> bool:
    """Whether one of the two is a part of the other, so that it cannot be computed first."""
    return source is target or target.inside is source or source.inside is target


def _join_columns(
    type_: int, left: _ColumnLineages, right: _ColumnLineages, pairs: Sequence[tuple[int, int]]
) -> _ColumnLineages:
    """The columns of a join, before its projection."""
    matched = type_ in _MATCHED_ONLY
    lefts, rights = [each.drop_direct() for each in left], [each.drop_direct() for each in right]
    for in_left, in_right in pairs:
        lefts[in_left] = lefts[in_left].unite(right[in_right], matched=matched)
        rights[in_right] = rights[in_right].unite(left[in_left], matched=matched)
    if type_ in (pb.RIGHT, pb.FULL):
        lefts = [_NOTHING_KNOWN] * len(left)
    if type_ in (pb.LEFT, pb.FULL):
        rights = [_NOTHING_KNOWN] * len(right)
    mark = [_NOTHING_KNOWN] if type_ in _MARKS else []
    if type_ in _BOTH:
        return lefts + rights
    return (lefts if type_ in _LEFT_ONLY else rights) + mark


def _key_pairs(join: pb.HashJoin) -> list[tuple[int, int]]:
    """The keys that are plain columns on both sides. Empty if NULL equals NULL in the join: a key set has no NULLs."""
    if join.null_equality != pb.NULL_EQUALS_NOTHING:
        return []
    plain = [each for each in join.on if is_column(each.left) and is_column(each.right)]
    return [(each.left.column.index, each.right.column.index) for each in plain]


def _is_relation(node: PlanNode) -> bool:
    """Whether it is a scan of files, with or without filters and projections. False for feeds, Spark tables and scans
    with a limit."""
    while kind(node) in ROW_WISE and not has_fetch(node):
        (node,) = children(node)
    if file_scan_conf(node) is None or has_fetch(node):
        return False
    return exchange_of(node) is None and feed_of(node) is None and not parts_of(node)


def is_filtered_aggregate(node: PlanNode) -> bool:
    """Whether it filters complete groups, as HAVING does, and returns every column that they are grouped by."""
    found = _aggregate_below(node)
    if found is None or not _filters(node):
        return False
    aggregate, columns = found
    groups = range(len(aggregate.group_expr))
    divided = partitioned_by_groups(aggregate)
    return divided and bool(groups) and _groups_by_columns(aggregate) and set(groups) <= set(columns)


def _aggregate_below(node: PlanNode) -> tuple[pb.Aggregate, list[int]] | None:
    """The aggregate below filters, and the indexes of its columns that the filters return; None if there is something
    else."""
    columns: list[int] | None = None
    while kind(node) in ROW_WISE - {"projection"} and not has_fetch(node):
        if kind(node) == "filter" and node.filter.projection:
            kept = list(node.filter.projection)
            columns = kept if columns is None else [kept[index] for index in columns]
        (node,) = children(node)
    if kind(node) != "aggregate" or has_fetch(node):
        return None
    return node.aggregate, list(range(len(node.aggregate.group_expr))) if columns is None else columns


def _groups_by_columns(aggregate: pb.Aggregate) -> bool:
    """Whether it has one set of groups, and not several as GROUPING SETS have."""
    return not aggregate.has_grouping_set and not any(aggregate.groups)


def group_columns(relation: Relation) -> list[int]:
    """The columns of the relation that its aggregate is grouped by, in the order of GROUP BY."""
    found = _aggregate_below(relation.node)
    assert found is not None
    aggregate, columns = found
    return [columns.index(group) for group in range(len(aggregate.group_expr))]


def has_filter(relation: Relation) -> bool:
    return _filters(relation.node)


def _filters(node: PlanNode) -> bool:
    """Whether there is a filter among the row-wise operators at the top."""
    while kind(node) in ROW_WISE:
        if kind(node) == "filter":
            return True
        (node,) = children(node)
    return kind(node) == "parquet_scan" and node.parquet_scan.HasField("predicate")


def base_node(relation: Relation) -> PlanNode:
    """The scan of a relation that is not an aggregate."""
    node = relation.node
    while file_scan_conf(node) is None:
        (node,) = children(node)
    return node


def base_scan(relation: Relation) -> pb.FileScanConf:
    """The configuration of the scan of a relation that is not an aggregate."""
    conf = file_scan_conf(base_node(relation))
    assert conf is not None
    return conf
