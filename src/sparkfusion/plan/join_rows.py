"""How many rows the joins of a plan give, as far as statistics of files tell.

A join by a key that is unique on neither side gives many times the rows of both: every sale of an item with every
inventory of it. Each row that such a join need not read saves as many. `plan/key_set_choice.py` asks for that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparkfusion.plan.determinism import has_fetch
from sparkfusion.plan.projections import compute_columns, is_column, project_columns, projection_exprs
from sparkfusion.plan.scan_statistics import most_values, row_count, scanned_column
from sparkfusion.plan.sources import columns_read
from sparkfusion.plan.wire import PlanNode, children, file_scan_conf, kind
from sparkfusion.plan.wire import wire_pb2 as pb

_SAME_ROWS = frozenset({"sort", "sort_preserving_merge", "repartition", "coalesce_batches", "cooperative"}) | {
    "coalesce_partitions",
    "buffer",
}
_BOTH = frozenset({pb.INNER, pb.LEFT, pb.RIGHT, pb.FULL})
_LEFT_ONLY = frozenset({pb.LEFT_SEMI, pb.LEFT_ANTI})
_RIGHT_ONLY = frozenset({pb.RIGHT_SEMI, pb.RIGHT_ANTI})
_KEPT_BY_FILTER = 0.2
"""The share of rows that a filter keeps, as DataFusion assumes where it knows nothing."""


@dataclass(frozen=True)
class _ScannedColumn:
    """A column of a scan."""

    scan: PlanNode
    conf: pb.FileScanConf
    index: int

    def count_values(self) -> int | None:
        """How many different values it has at most; None if that is not known, or if the scan computes it."""
        scanned = scanned_column(self.scan, self.index)
        return None if scanned is None else most_values(self.conf, scanned)


@dataclass(frozen=True)
class _NodeRows:
    """What is known about the rows of a node: about how many, its columns (None for a computed one), and the scans
    below it whose rows have part in them."""

    count: float
    columns: list[_ScannedColumn | None]
    scans: tuple[PlanNode, ...]


class JoinRows:
    """Estimates for one plan. The plan must not change meanwhile."""

    def __init__(self, root: PlanNode) -> None:
        self._joins: list[tuple[float, tuple[PlanNode, ...]]] = []
        self._visit(root)

    def before(self, target: PlanNode, source: PlanNode) -> float:
        """The rows of the largest join that reads the scan `target` and not yet the scan `source`, without key sets. 0
        if there is none, or if statistics are missing."""
        found = [rows for rows, scans in self._joins if _holds(scans, target) and not _holds(scans, source)]
        return max(found, default=0)

    def multiplies(self, least: float, factor: int) -> bool:
        """Whether a join gives at least so many rows, and so many for each row of a scan that it reads."""
        return any(rows >= max(least, factor * min(map(rows_of, scans))) for rows, scans in self._joins)

    def _visit(self, node: PlanNode) -> _NodeRows | None:
        """What is known about the rows of a node; None if nothing."""
        if (conf := file_scan_conf(node)) is not None:
            return _scan_rows(node, conf)
        below = [self._visit(child) for child in children(node)]
        if has_fetch(node) or None in below:
            return None
        known = [each for each in below if each is not None]
        name = kind(node)
        if name in _SAME_ROWS:
            return known[0]
        if name == "filter":
            kept = project_columns(known[0].columns, node.filter.projection)
            return replace(known[0], count=known[0].count * _KEPT_BY_FILTER, columns=kept)
        if name == "projection":
            return replace(known[0], columns=compute_columns(known[0].columns, projection_exprs(node), None))
        return self._join(node.hash_join, *known) if name == "hash_join" else None

    def _join(self, join: pb.HashJoin, left: _NodeRows, right: _NodeRows) -> _NodeRows | None:
        if join.join_type in _LEFT_ONLY | _RIGHT_ONLY:
            kept = left if join.join_type in _LEFT_ONLY else right
            return replace(kept, columns=project_columns(kept.columns, join.projection))
        if join.join_type not in _BOTH or not (keys := _keys(join, left, right)):
            return None
        count = left.count * right.count / max(1, keys)
        if join.join_type in (pb.LEFT, pb.FULL):
            count = max(count, left.count)
        if join.join_type in (pb.RIGHT, pb.FULL):
            count = max(count, right.count)
        scans = (*left.scans, *right.scans)
        self._joins.append((count, scans))
        return _NodeRows(count, project_columns([*left.columns, *right.columns], join.projection), scans)


def _keys(join: pb.HashJoin, left: _NodeRows, right: _NodeRows) -> float | None:
    """About how many different keys the side with more of them has; None if that is not known."""
    sides = []
    for side, exprs in ((left, [each.left for each in join.on]), (right, [each.right for each in join.on])):
        found = [_values(side, expr) for expr in exprs]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        product, most = 1.0, max((float(rows_of(scan)) for scan in side.scans), default=0.0)
        for each in known:
            product *= each
        sides.append(min(product, most))
    return max(sides)


def _values(side: _NodeRows, expr: pb.Expr) -> int | None:
    if not is_column(expr):
        return None
    column = side.columns[expr.column.index]
    return None if column is None else column.count_values()


def _scan_rows(node: PlanNode, conf: pb.FileScanConf) -> _NodeRows | None:
    rows = row_count(conf)
    if rows is None or has_fetch(node):
        return None
    # Columns are looked up only if a join has them as keys: most plans have many more.
    if conf.HasField("projection_exprs"):
        width = len(pb.ScanExprs.FromString(conf.projection_exprs).exprs)
    else:
        width = len(conf.projection) or len(columns_read(conf))
    return _NodeRows(float(rows), [_ScannedColumn(node, conf, index) for index in range(width)], (node,))


def _holds(scans: tuple[PlanNode, ...], scan: PlanNode) -> bool:
    return any(each is scan for each in scans)  # messages are equal if their contents are


def rows_of(scan: PlanNode) -> int:
    """The rows of the scanned files; 0 if that is not known."""
    conf = file_scan_conf(scan)
    return (row_count(conf) if conf is not None else None) or 0
