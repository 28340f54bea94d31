"""Which columns and rows of Spark DataFrames a plan reads, and how many rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparkfusion.ids import TableId
from sparkfusion.plan.conditions import Attribute, Condition, Some, read_condition
from sparkfusion.plan.sources import columns_read
from sparkfusion.plan.table_parts import TablePart, parts_of
from sparkfusion.plan.wire import PlanNode, body, children, kind
from sparkfusion.plan.wire import wire_pb2 as pb

_ROW_BY_ROW = frozenset({"projection", "cooperative", "coalesce_batches"})


@dataclass(frozen=True)
class TableRead:
    """The columns and rows of a table that all scans of a plan read together.

    Attributes:
        columns: the columns that it may use; the others may be NULL.
        condition: rows for which it is not true may be left out: the plan would drop them.
        limit: this many rows for which the condition is true are enough for each of the plan's partitions.
    """

    table: TableId
    name: str
    parts: tuple[int, ...]
    columns: tuple[str, ...]
    condition: Condition | None = None
    limit: int | None = None

    def __str__(self) -> str:
        where = f" where {self.condition}" if self.condition is not None else ""
        return f"{self.name}{where}" + (f" limit {self.limit}" if self.limit is not None else "")


@dataclass(frozen=True)
class _TableScan:
    parts: Sequence[TablePart]
    columns: tuple[str, ...]
    condition: Condition | None
    limit: int | None


def tables_read(node: PlanNode) -> tuple[TableRead, ...]:
    """Every table that the plan reads, each once."""
    scans: dict[TableId, list[_TableScan]] = {}
    for scan in _scans(node, None):
        scans.setdefault(scan.parts[0].table, []).append(scan)
    return tuple(_combine(found) for found in scans.values())


def _combine(scans: Sequence[_TableScan]) -> TableRead:
    """One read for all scans of a table, because Spark sends its rows once."""
    first = scans[0].parts[0]
    conditions = list(dict.fromkeys(scan.condition for scan in scans))
    wanted = [condition for condition in conditions if condition is not None]
    if len(wanted) < len(conditions):
        wanted = []
    limits = [scan.limit for scan in scans if scan.limit is not None]
    # enough rows for one condition may be too few for another
    limited = len(limits) == len(scans) and len(conditions) == 1
    return TableRead(
        first.table,
        first.name,
        tuple(dict.fromkeys(part.part for scan in scans for part in scan.parts)),
        tuple(dict.fromkeys(name for scan in scans for name in scan.columns)),
        Some(tuple(wanted)) if len(wanted) > 1 else wanted[0] if wanted else None,
        max(limits) if limited else None,
    )


def _scans(node: PlanNode, limit: int | None, filter: bytes = b"") -> Iterator[_TableScan]:
    """The scans below a node. Each partition has to return `limit` of the rows that the filter keeps."""
    name = kind(node)
    if name == "local_limit":
        yield from _scans(node.local_limit.input, _least(limit, node.local_limit.fetch))
    elif name == "filter":
        own = node.filter.fetch if node.filter.HasField("fetch") else None
        enough = _least(limit, own) if not filter else own  # the filter above drops rows of this one
        yield from _scans(node.filter.input, enough, node.filter.expr.SerializeToString())
    elif name in _ROW_BY_ROW and not filter:
        enough = node.coalesce_batches.fetch if name == "coalesce_batches" else 0
        yield from _scans(body(node).input, _least(limit, enough or None))
    elif parts := parts_of(node):
        yield _scan(node.arrow_scan.base_conf, parts, limit, filter)
    else:
        for child in children(node):
            yield from _scans(child, None)


def _scan(conf: pb.FileScanConf, parts: Sequence[TablePart], limit: int | None, filter: bytes) -> _TableScan:
    columns = columns_read(conf)
    if conf.HasField("limit"):  # a filter above it must not choose among other rows
        return _TableScan(parts, columns, None, conf.limit.limit)
    if not filter:
        return _TableScan(parts, columns, None, limit)
    found = read_condition(filter, _attributes(conf))
    return _TableScan(parts, columns, found.condition, limit if found.exact else None)


def _attributes(conf: pb.FileScanConf) -> list[Attribute | None]:
    """The columns that a scan gives, as columns of the table."""
    names = [column.name for column in pb.Schema.FromString(conf.schema).columns]
    if not conf.HasField("projection_exprs"):
        return [Attribute(names[index], index) for index in list(conf.projection) or range(len(names))]
    given = [each.expr for each in pb.ScanExprs.FromString(conf.projection_exprs).exprs]
    return [
        Attribute(names[expr.column.index], expr.column.index) if expr.WhichOneof("kind") == "column" else None
        for expr in given
    ]


def _least(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)
