"""Walking and rewriting plans: the only module that knows which field of a node holds its children."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.message import DecodeError

from sparkfusion.errors import WireFormatError
from sparkfusion.plan.wire import wire_pb2 as pb

ONE_INPUT = frozenset(
    {
        "projection", "global_limit", "local_limit", "aggregate", "sort", "coalesce_batches", "filter",
        "coalesce_partitions", "repartition", "window", "sort_preserving_merge", "json_sink", "csv_sink",
        "parquet_sink", "unnest", "cooperative", "async_func", "buffer", "scalar_subquery",
    }
)  # fmt: skip
JOINS = frozenset({"hash_join", "nested_loop_join", "cross_join", "sort_merge_join"})
MANY_INPUTS = frozenset({"union", "interleave"})
FILE_SCANS = frozenset({"parquet_scan", "csv_scan", "json_scan", "avro_scan", "arrow_scan"})
SINKS = frozenset({"parquet_sink", "csv_sink", "json_sink"})


def decode(data: bytes) -> pb.PlanNode:
    try:
        return pb.PlanNode.FromString(data)
    except DecodeError as error:
        raise WireFormatError(f"these bytes are not a DataFusion plan: {error}") from None


def encode(node: pb.PlanNode) -> bytes:
    return node.SerializeToString()


def copy_of(node: pb.PlanNode) -> pb.PlanNode:
    made = pb.PlanNode()
    made.CopyFrom(node)
    return made


def kind(node: pb.PlanNode) -> str:
    """The node's name in `wire.proto`; a node newer than our schema has none and is refused by the gate."""
    return node.WhichOneof("kind") or "unknown"


def body(node: pb.PlanNode) -> Any:
    return getattr(node, kind(node))


def children(node: pb.PlanNode) -> list[pb.PlanNode]:
    """The children in order, as references: changing one changes the parent."""
    name = kind(node)
    if name in ONE_INPUT:
        return [body(node).input]
    if name in JOINS:
        return [body(node).left, body(node).right]
    if name in MANY_INPUTS:
        return list(body(node).inputs)
    return []


def walk(node: pb.PlanNode) -> Iterator[pb.PlanNode]:
    """The node and everything below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def rewrite(node: pb.PlanNode, change: Callable[[pb.PlanNode], pb.PlanNode | None]) -> pb.PlanNode:
    """Apply `change` to every node, children first, in place. `change` returns a new node, or None to keep it."""
    for child in children(node):
        rewrite(child, change)
    changed = change(node)
    if changed is not None:
        node.CopyFrom(changed)
    return node


def file_scan_conf(node: pb.PlanNode) -> pb.FileScanConf | None:
    """The configuration of a file scan, whatever the format; None for any other node."""
    if kind(node) not in FILE_SCANS:
        return None
    conf: pb.FileScanConf = body(node).base_conf
    return conf


def partition_count(node: pb.PlanNode) -> int:
    """How many partitions the node produces. Computed here because the wire format does not have it for every node."""
    name = kind(node)
    conf = file_scan_conf(node)
    if conf is not None:
        return max(1, len(conf.file_groups))
    if name == "memory_scan":
        return max(1, len(node.memory_scan.partitions))
    if name in ("empty", "placeholder_row"):
        return max(1, int(body(node).partitions))
    if name == "repartition":
        return _partitioning_count(node.repartition.partitioning)
    if name in ("coalesce_partitions", "sort_preserving_merge", "global_limit") or name in SINKS:
        return 1
    if name == "sort" and not node.sort.preserve_partitioning:
        return 1
    if name == "union":
        return sum(partition_count(child) for child in node.union.inputs)
    if name == "interleave":
        return partition_count(node.interleave.inputs[0])
    if name in JOINS:
        return partition_count(body(node).right)
    below = children(node)
    return partition_count(below[0]) if below else 1


def _partitioning_count(partitioning: pb.Partitioning) -> int:
    method = partitioning.WhichOneof("method")
    if method == "hash":
        return int(partitioning.hash.partition_count)
    if method == "round_robin":
        return int(partitioning.round_robin)
    return int(partitioning.unknown) or 1
