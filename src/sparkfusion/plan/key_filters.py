"""Filter a Parquet scan by the key set that reduces it, so that rows without one of its keys are not decoded.

The worker calls this when it has the keys' files, just before the plan runs. The range of the keys prunes row groups
and pages. If there are few keys compared with the rows, the scan decodes the key column first, and the other columns
only where the key is in the set. Both only save reading: the semi join above the scan still checks every row.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from sparkfusion.ids import ExchangeId
from sparkfusion.plan.build_sides import ROW_WISE
from sparkfusion.plan.determinism import has_fetch
from sparkfusion.plan.key_sets import below_reductions, reduction_of
from sparkfusion.plan.scan_statistics import most_filter_keys, scanned_column
from sparkfusion.plan.wire import PlanNode, children, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb

_MOST_PRUNING = 20
"""The most keys that DataFusion prunes by; the default of its option `max_in_list_size`. For pruning it makes a
condition that is as deep as the list is long. With thousands of keys, such a condition would overflow the stack of a
thread."""


@dataclass(frozen=True)
class Keys:
    """The keys of a set.

    Attributes:
        type: the name of their type in the wire format, such as `int64`.
        values: all of them, the smallest first; empty if there are more than a scan filters by.
    """

    least: int
    most: int
    type: str
    values: tuple[int, ...] = ()


KeysOf = Callable[[ExchangeId, int], Keys | None]
"""(exchange, column) → the keys; None if there are no keys, or if keys of their type cannot filter a scan."""


def filter_by_keys(root: PlanNode, keys_of: KeysOf) -> None:
    """Add each key set to the predicate of the Parquet scan that it reduces, in place."""
    for node in walk(root):
        reduction = reduction_of(node)
        if reduction is None:
            continue
        scan, column = _scan_of(reduction.reduced, reduction.column)
        if scan is None or column is None:
            continue
        found = keys_of(reduction.exchange, reduction.key)
        if found is not None:
            with suppress(DecodeError):  # the query's own predicate is nested too deeply to add another one
                _add_range(scan, column, found)
                if 0 < len(found.values) <= most_filter_keys(scan.base_conf, column):
                    _add_keys(scan, column, found)


def _scan_of(node: PlanNode, column: int) -> tuple[pb.ParquetScan | None, int | None]:
    """The Parquet scan below filters, projections and other reductions, and the column of its files that is this column
    of the node; None if there is something else."""
    leaf = node = below_reductions(node)
    while kind(leaf) in ROW_WISE and not has_fetch(leaf):
        (leaf,) = children(leaf)
    if kind(leaf) != "parquet_scan" or has_fetch(leaf):
        return None, None
    scanned = scanned_column(node, column)
    stored = len(pb.Schema.FromString(leaf.parquet_scan.base_conf.schema).columns)
    return leaf.parquet_scan, scanned if scanned is not None and scanned < stored else None


def _add_range(scan: pb.ParquetScan, column: int, keys: Keys) -> None:
    attribute = _attribute(scan, column)
    least = _binary("GtEq", attribute, _literal(keys.least, keys.type))
    most = _binary("LtEq", attribute, _literal(keys.most, keys.type))
    both = _binary("And", least, most)
    _set_predicate(
        scan, _binary("And", scan.predicate.SerializeToString(), both) if scan.HasField("predicate") else both
    )


def _add_keys(scan: pb.ParquetScan, column: int, keys: Keys) -> None:
    """Let the scan filter by the keys first. Its other filters then apply to the rows that are left."""
    made = pb.Condition()
    made.in_list.expr.MergeFromString(_attribute(scan, column))
    for value in keys.values:
        setattr(made.in_list.list.add().literal, keys.type, value)
    _set_predicate(scan, _binary("And", made.SerializeToString(), scan.predicate.SerializeToString()))
    options = getattr(scan.options, "global")
    options.pushdown_filters = True
    options.max_in_list_size = min(options.max_in_list_size, _MOST_PRUNING)


def _set_predicate(scan: pb.ParquetScan, encoded: bytes) -> None:
    scan.predicate.Clear()
    scan.predicate.MergeFromString(encoded)


def _attribute(scan: pb.ParquetScan, column: int) -> bytes:
    name = pb.Schema.FromString(scan.base_conf.schema).columns[column].name
    return pb.Condition(column=pb.Column(name=name, index=column)).SerializeToString()


def _literal(value: int, type_: str) -> bytes:
    made = pb.Condition()
    setattr(made.literal, type_, value)
    return made.SerializeToString()


def _binary(op: str, left: bytes, right: bytes) -> bytes:
    """An encoded binary expression. Its operands may be expressions that our view of the wire format does not know."""
    made = pb.Condition()
    made.binary.op = op
    made.binary.left.MergeFromString(left)
    made.binary.right.MergeFromString(right)
    return made.SerializeToString()
