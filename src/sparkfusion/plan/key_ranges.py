"""The range of a key set prunes the scan that it reduces: row groups and pages without any key are not read.

The worker calls this when it has the keys' files, just before the plan runs. It only saves reading: the semi join above
the scan still looks at every row.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from sparkfusion.ids import ExchangeId
from sparkfusion.plan.build_sides import ROW_WISE
from sparkfusion.plan.determinism import has_fetch
from sparkfusion.plan.key_sets import reduction_of
from sparkfusion.plan.scan_statistics import scanned_column
from sparkfusion.plan.wire import PlanNode, children, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb


@dataclass(frozen=True)
class KeyRange:
    """The smallest and the largest key. `type`: the name of their type in the wire format, such as `int64`."""

    least: int
    most: int
    type: str


RangeOf = Callable[[ExchangeId, int], KeyRange | None]
"""(exchange, column) → the range of the keys; None if there is no key, or if their type has no range here."""


def prune_by_key_ranges(root: PlanNode, range_of: RangeOf) -> None:
    """Add the range of each key set to the predicate of the Parquet scan that it reduces, in place."""
    for node in walk(root):
        reduction = reduction_of(node)
        if reduction is None:
            continue
        scan, column = _scan_of(reduction.reduced, reduction.column)
        if scan is None or column is None:
            continue
        found = range_of(reduction.exchange, reduction.key)
        if found is not None:
            with suppress(DecodeError):  # a predicate of the query that is nested too deep to put another one beside it
                _add_predicate(scan, column, found)


def _scan_of(node: PlanNode, column: int) -> tuple[pb.ParquetScan | None, int | None]:
    """The Parquet scan below filters, projections and other reductions, and which of its files' columns a column of the
    node is; None if there is something else."""
    while (inner := reduction_of(node)) is not None:
        node = inner.reduced
    leaf = node
    while kind(leaf) in ROW_WISE and not has_fetch(leaf):
        (leaf,) = children(leaf)
    if kind(leaf) != "parquet_scan" or has_fetch(leaf):
        return None, None
    scanned = scanned_column(node, column)
    stored = len(pb.Schema.FromString(leaf.parquet_scan.base_conf.schema).columns)
    return leaf.parquet_scan, scanned if scanned is not None and scanned < stored else None


def _add_predicate(scan: pb.ParquetScan, column: int, keys: KeyRange) -> None:
    name = pb.Schema.FromString(scan.base_conf.schema).columns[column].name
    attribute = pb.Condition(column=pb.Column(name=name, index=column)).SerializeToString()
    least = _binary("GtEq", attribute, _literal(keys.least, keys.type))
    most = _binary("LtEq", attribute, _literal(keys.most, keys.type))
    both = _binary("And", least, most)
    if scan.HasField("predicate"):
        both = _binary("And", scan.predicate.SerializeToString(), both)
    scan.predicate.Clear()
    scan.predicate.MergeFromString(both)


def _literal(value: int, type_: str) -> bytes:
    made = pb.Condition()
    setattr(made.literal, type_, value)
    return made.SerializeToString()


def _binary(op: str, left: bytes, right: bytes) -> bytes:
    """An encoded expression of two encoded ones, which may be of kinds that we do not know."""
    made = pb.Condition()
    made.binary.op = op
    made.binary.left.MergeFromString(left)
    made.binary.right.MergeFromString(right)
    return made.SerializeToString()
