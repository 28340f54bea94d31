"""Estimates from a scan's statistics: how much it reads, and how many different values a column has at most."""

from __future__ import annotations

from sparkfusion.plan.sizing import file_bytes
from sparkfusion.plan.sources import columns_read
from sparkfusion.plan.wire import PlanNode, body, file_scan_conf, kind
from sparkfusion.plan.wire import wire_pb2 as pb

MOST_FILTER_KEYS = 50_000
"""The most keys that a scan filters by while it decodes."""
_BYTES_PER_KEY = 1024
"""For each key, files must have this many bytes on average, because every file that is opened copies the keys."""
_VALUES_PER_KEY = 50
"""A column must have this many times the values of a key set, so that most rows are left out."""
_WHOLE_NUMBERS = frozenset({"int8", "int16", "int32", "int64", "uint64", "date32"})


def projected_bytes(conf: pb.FileScanConf) -> int:
    """About how many bytes a scan reads: the size of its files, times the share of their columns that it reads."""
    total = sum(file_bytes(file) for group in conf.file_groups for file in group.files)
    columns = len(pb.Schema.FromString(conf.schema).columns)
    return total * len(columns_read(conf)) // max(1, columns)


def row_count(conf: pb.FileScanConf) -> int | None:
    """The rows of the scanned files, before any filter; None if that is not known."""
    rows = pb.Statistics.FromString(conf.statistics).num_rows
    known = rows.certainty != pb.ABSENT and rows.value.WhichOneof("kind") == "uint64"
    return rows.value.uint64 if known else None


def most_values(conf: pb.FileScanConf, column: int) -> int | None:
    """How many different values a column of whole numbers has at most; None if that is not known.

    Args:
        column: its index in the scanned files.
    """
    rows = row_count(conf)
    statistics = pb.Statistics.FromString(conf.statistics)
    if rows is None or column >= len(statistics.columns):
        return None
    least, most = _whole_number(statistics.columns[column].min), _whole_number(statistics.columns[column].max)
    return min(rows, most - least + 1) if least is not None and most is not None else None


def scanned_column(node: PlanNode, column: int) -> int | None:
    """The column of the scanned files that is this column of a scan, or of filters and projections above a scan; None
    if it is computed."""
    while (conf := file_scan_conf(node)) is None:
        if kind(node) == "projection":
            expr = pb.Projection.FromString(node.projection.SerializeToString()).expr[column]
            if expr.WhichOneof("kind") != "column":
                return None
            column = expr.column.index
        elif kind(node) == "filter" and node.filter.projection:
            column = node.filter.projection[column]
        node = body(node).input
    if conf.HasField("projection_exprs"):
        expr = pb.ScanExprs.FromString(conf.projection_exprs).exprs[column].expr
        return expr.column.index if expr.WhichOneof("kind") == "column" else None
    return conf.projection[column] if conf.projection else column


def _whole_number(estimate: pb.Estimate) -> int | None:
    name = estimate.value.WhichOneof("kind")
    if estimate.certainty == pb.ABSENT or name not in _WHOLE_NUMBERS:
        return None
    return int(getattr(estimate.value, name))


def most_filter_keys(conf: pb.FileScanConf, column: int) -> int:
    """The most keys of a column that a scan may filter by before it decodes other columns. With more keys it hardly
    gains. 0 if it has no other columns, or if its statistics are unknown."""
    values = most_values(conf, column)
    sizes = [file_bytes(file) for group in conf.file_groups for file in group.files]
    if values is None or not sizes or len(columns_read(conf)) < 2:
        return 0
    return min(MOST_FILTER_KEYS, values // _VALUES_PER_KEY, sum(sizes) // (len(sizes) * _BYTES_PER_KEY))
