"""Shared aggregates: an aggregate that a query contains several times is computed once.

DataFusion copies a common table expression, or a view, to every place that names it. Each copy of an aggregate in it
would read the tables again. Copies that are equal to the last byte become one stage, and each place reads its rows. See
docs/adr/0046-equal-aggregates-run-once.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from sparkfusion.plan.column_lineage import SchemaOf
from sparkfusion.plan.determinism import is_deterministic
from sparkfusion.plan.feed_scans import feeds_read
from sparkfusion.plan.groups import partitioned_by_groups
from sparkfusion.plan.scan_statistics import projected_bytes
from sparkfusion.plan.table_parts import parts_of
from sparkfusion.plan.wire import PlanNode, children, copy_of, encode, file_scan_conf, kind, partition_count, walk
from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.plan.wire.build import coalesce, hash_repartition

MakeShared = Callable[[PlanNode, str], PlanNode]
"""Makes a stage of an aggregate, for a reason, and returns a scan of its rows."""


def share_aggregates(root: PlanNode, schema_of: SchemaOf, make_shared: MakeShared, least_bytes: int) -> None:
    """Compute equal aggregates once if they read enough, in place. Called before the plan is cut."""
    sharing = _Sharing(schema_of, make_shared, least_bytes)
    sharing.count_below(root)
    sharing.replace_below(root)


class _Sharing:
    """Which aggregates are equal, and the scans that stand for them; lives for one plan."""

    def __init__(self, schema_of: SchemaOf, make_shared: MakeShared, least_bytes: int) -> None:
        self._schema_of = schema_of
        self._make_shared = make_shared
        self._least_bytes = least_bytes
        self._uses: Counter[bytes] = Counter()
        self._restored: dict[bytes, PlanNode] = {}

    def count_below(self, node: PlanNode) -> None:
        """Count the uses of each aggregate. An aggregate inside another one counts once, however often the outer one is
        used."""
        for child in children(node):
            if may_be_shared(child):
                key = encode(child)
                self._uses[key] += 1
                if self._uses[key] > 1:
                    continue
            self.count_below(child)

    def replace_below(self, node: PlanNode) -> None:
        """Put scans in place of the aggregates that are used several times, outer ones first."""
        for child in children(node):
            key = encode(child) if may_be_shared(child) else b""
            if self._uses[key] > 1 and (key in self._restored or self._pays(child)):
                if key not in self._restored:
                    self._restored[key] = self._share(copy_of(child), self._uses[key])
                child.CopyFrom(self._restored[key])
            else:
                self.replace_below(child)

    def _pays(self, node: PlanNode) -> bool:
        """Whether it may run once, and reads enough to be worth a stage."""
        if feeds_read(node) or any(parts_of(each) for each in walk(node)) or not is_deterministic(node):
            return False
        return bytes_read(node) >= self._least_bytes

    def _share(self, node: PlanNode, uses: int) -> PlanNode:
        """A scan of its rows, partitioned as the aggregate was."""
        names = self._schema_of(node).names
        groups, partitions, read = len(node.aggregate.group_expr), partition_count(node), bytes_read(node)
        self.replace_below(node)
        scan = self._make_shared(node, f"computed once for {uses} parts of the query: it reads {read:,} bytes")
        if partitions == 1:
            return coalesce(scan)
        keys = [pb.Expr(column=pb.Column(name=names[index], index=index)) for index in range(groups)]
        return hash_repartition(coalesce(scan), keys, partitions)  # in one task: on Spark each would read all rows


def may_be_shared(node: PlanNode) -> bool:
    """Whether it is an aggregate of complete groups without a sort order, whose partitions can be rebuilt from its
    rows."""
    if kind(node) != "aggregate":
        return False
    if kind(node.aggregate.input) == "coalesce_partitions":
        return node.aggregate.mode in (pb.FINAL, pb.SINGLE)
    return partitioned_by_groups(node.aggregate)


def bytes_read(node: PlanNode) -> int:
    """About how many bytes of files the scans below read."""
    scans = [conf for each in walk(node) if (conf := file_scan_conf(each)) is not None]
    return sum(map(projected_bytes, scans))
