"""Feeds in plans: scans whose files are found while the query runs.

DataFusion plans such a table as a listing of two Arrow files that do not exist. There are two, so that it plans for
several partitions. They are Arrow files, because DataFusion has no statistics of those and so assumes a large table
(docs/traps.md#statistics-of-placeholders). This module turns each of these scans into a scan of the feed's own format,
with a file group for each task. The placeholder path of a group names the feed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sparkfusion.errors import InternalError
from sparkfusion.ids import FeedId
from sparkfusion.plan.joins import collects_left, emits_build_rows
from sparkfusion.plan.sources import columns_read, object_path
from sparkfusion.plan.wire import PlanNode, children, decode, encode, file_scan_conf, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb

_PREFIX = "sparkfusion-feed/"
_ANY_SIZE = 1 << 60
_UNIT_WISE = frozenset({"projection", "filter", "coalesce_batches", "cooperative", "local_limit", "unnest", "union"})


@dataclass(frozen=True)
class FeedTable:
    """How plans scan a feed.

    Attributes:
        template: an encoded scan of the feed's format, with the options as DataFusion encodes them.
        partition_columns: the last columns of the table, whose values come with the units and not from the files.
        tasks: how many tasks should read it, if set. `partitions`: the most tasks that have something to read.
        bytes: about how large it is, if it is known.
    """

    name: str
    template: bytes
    partition_columns: tuple[str, ...] = ()
    tasks: int | None = None
    partitions: int | None = None
    bytes: int | None = None

    def tasks_of(self, tasks_for: Callable[[int], int]) -> int:
        wanted = self.tasks or tasks_for(self.bytes if self.bytes is not None else _ANY_SIZE)
        return wanted if self.partitions is None else min(wanted, self.partitions)


@dataclass(frozen=True)
class FeedScan:
    """One scan of a feed in a query, read by this many tasks."""

    feed: FeedId
    table: int
    tasks: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class UnitFile:
    """A file of a work unit, as a scan needs it. `values` are encoded literals, in the order of partition columns."""

    path: str
    size: int
    range: tuple[int, int] | None = None
    values: tuple[bytes, ...] = field(default=())


def mark_feeds(
    root: PlanNode, home: str, feed_table: Callable[[int], FeedTable], tasks_for: Callable[[int], int]
) -> tuple[FeedScan, ...]:
    """Turn scans of files below `home`, named `<table>/…`, into scans of feeds, in place.

    Args:
        tasks_for: the number of tasks for a number of bytes.
    """
    prefix = object_path(home).rstrip("/") + "/"
    found: list[FeedScan] = []
    for node in walk(root):
        table = _table_of(node, prefix)
        if table is not None:
            feed = feed_table(table)
            conf = node.arrow_scan.base_conf
            scan = FeedScan(len(found), table, feed.tasks_of(tasks_for), columns_read(conf))
            _make_feed_scan(node, feed, scan)
            found.append(scan)
    if found:
        _offer_predicates(root)
    return tuple(found)


def _table_of(node: PlanNode, prefix: str) -> int | None:
    if kind(node) != "arrow_scan":
        return None
    for group in node.arrow_scan.base_conf.file_groups:
        for file in group.files:
            if file.path.startswith(prefix):
                return int(file.path.removeprefix(prefix).split("/")[0])
    return None


def _make_feed_scan(node: PlanNode, feed: FeedTable, scan: FeedScan) -> None:
    conf = pb.FileScanConf()
    conf.CopyFrom(node.arrow_scan.base_conf)
    del conf.file_groups[:]
    for part in range(scan.tasks):
        path = f"{_PREFIX}{scan.feed}/{part}/{feed.name.replace('/', '_')}"
        conf.file_groups.add().files.add(path=path, size=(feed.bytes or 0) // scan.tasks)
    conf.table_partition_cols.extend(feed.partition_columns)
    made = decode(feed.template)
    made_conf = file_scan_conf(made)
    assert made_conf is not None
    made_conf.CopyFrom(conf)
    if kind(made) == "parquet_scan":
        made.parquet_scan.ClearField("predicate")
    node.CopyFrom(made)


def _offer_predicates(root: PlanNode) -> None:
    """Also give a filter right above a Parquet scan to the scan, which can then skip row groups and pages. The filter
    stays in place.

    The filter's columns are those of the scan's output. DataFusion reads the predicate of a scan in the same way if
    `projection` lists the columns that the scan returns. Scans that compute columns are left unchanged.
    """
    for node in walk(root):
        if kind(node) != "filter" or kind(node.filter.input) != "parquet_scan" or feed_of(node.filter.input) is None:
            continue
        scan = node.filter.input.parquet_scan
        given = _plain_columns(scan.base_conf)
        if given:
            scan.base_conf.projection[:] = given
            scan.predicate.CopyFrom(node.filter.expr)


def _plain_columns(conf: pb.FileScanConf) -> list[int]:
    """The indexes of the columns that a scan returns; empty if it computes anything."""
    found = []
    for each in pb.ScanExprs.FromString(conf.projection_exprs).exprs:
        if each.expr.WhichOneof("kind") != "column" or each.expr.column.name != each.alias:
            return []
        found.append(each.expr.column.index)
    return found


def feed_of(node: PlanNode) -> FeedId | None:
    """Which feed the node scans; None for anything else."""
    conf = file_scan_conf(node)
    if conf is None:
        return None
    for group in conf.file_groups:
        for file in group.files:
            if is_fed(file):
                return int(file.path.removeprefix(_PREFIX).split("/")[0])
    return None


def is_fed(file: pb.PartitionedFile) -> bool:
    """Whether it is a placeholder for units, not a file."""
    return file.path.startswith(_PREFIX)


def feeds_read(node: PlanNode) -> tuple[FeedId, ...]:
    found = (feed_of(each) for each in walk(node))
    return tuple(dict.fromkeys(feed for feed in found if feed is not None))


def split_inputs(node: PlanNode) -> list[PlanNode]:
    """The inputs that read a feed and must be cut off, because the node has to see all of their rows at once."""
    return [child for index, child in enumerate(children(node)) if feeds_read(child) and not _is_unit_wise(node, index)]


def _is_unit_wise(node: PlanNode, child: int) -> bool:
    """Whether the operator may run over a few work units at a time (docs/adr/0009-feeds-are-functions-of-units.md).

    For the operators above, the combined results of several runs over parts of the input must be as good as those of
    one run over all of it. Examples are filters and projections, partial aggregates that are merged later, and limits
    that another limit above repeats.
    """
    name = kind(node)
    if name in _UNIT_WISE:
        return True
    if name == "aggregate":
        return bool(node.aggregate.mode == pb.PARTIAL)
    if name == "repartition":
        return bool(node.repartition.partitioning.WhichOneof("method") == "hash")
    return collects_left(node) and child == 1 and not emits_build_rows(node)


def bind_feed(plan: bytes, files: Sequence[UnitFile], store: str) -> bytes:
    """The task's plan, in which its feed scan reads these files. `store` is the URL of the object store that has them
    all."""
    root = decode(plan)
    scans = [node for node in walk(root) if feed_of(node) is not None]
    if len(scans) != 1:
        raise InternalError(f"a task reads {len(scans)} feeds at once")
    conf = file_scan_conf(scans[0])
    assert conf is not None
    conf.object_store_url = store
    del conf.file_groups[:]
    group = conf.file_groups.add()
    for file in files:
        made = group.files.add(path=file.path, size=file.size)
        if file.range is not None:
            made.range.start, made.range.end = file.range
        made.partition_values.extend(file.values)
    return encode(root)


def scans_arrow(plan: bytes) -> bool:
    """Whether a task's feed is scanned as Arrow files."""
    return any(kind(node) == "arrow_scan" and feed_of(node) is not None for node in walk(decode(plan)))


def row_limit(plan: bytes) -> int | None:
    """The limit at the root of a task's plan: no more rows of the task are needed."""
    root = decode(plan)
    while kind(root) in ("cooperative", "coalesce_batches"):
        (root,) = children(root)
    return root.local_limit.fetch if kind(root) == "local_limit" else None
