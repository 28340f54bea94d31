"""Small plan nodes that rules, cut and isolate put into a plan."""

from __future__ import annotations

from collections.abc import Iterable

from sparkfusion.plan.wire import wire_pb2 as pb
from sparkfusion.urls import LOCAL_STORE


def coalesce(node: pb.PlanNode) -> pb.PlanNode:
    """All partitions of the node as one, in no particular order."""
    made = pb.PlanNode()
    made.coalesce_partitions.input.CopyFrom(node)
    return made


def local_limit(node: pb.PlanNode, fetch: int) -> pb.PlanNode:
    """At most `fetch` rows of every partition of the node. 0 keeps the schema and drops the rows."""
    made = pb.PlanNode()
    made.local_limit.input.CopyFrom(node)
    made.local_limit.fetch = fetch
    return made


def cooperative(node: pb.PlanNode) -> pb.PlanNode:
    """The node below a cooperative operator, which regularly yields to the async runtime."""
    made = pb.PlanNode()
    made.cooperative.input.CopyFrom(node)
    return made


def hash_repartition(node: pb.PlanNode, keys: Iterable[pb.Expr], partitions: int) -> pb.PlanNode:
    made = pb.PlanNode()
    made.repartition.input.CopyFrom(node)
    made.repartition.partitioning.hash.hash_expr.extend(keys)
    made.repartition.partitioning.hash.partition_count = partitions
    return made


def union(nodes: Iterable[pb.PlanNode]) -> pb.PlanNode:
    made = pb.PlanNode()
    made.union.inputs.extend(nodes)
    return made


def projection(node: pb.PlanNode, columns: Iterable[tuple[str, pb.Expr]]) -> pb.PlanNode:
    """Named expressions over the rows of the node."""
    named = list(columns)
    expressions = pb.Projection(expr=[expr for _, expr in named], expr_name=[name for name, _ in named])
    expressions.input.CopyFrom(node)
    made = pb.PlanNode()
    made.projection.MergeFromString(expressions.SerializeToString())
    return made


def arrow_scan(schema: bytes, width: int) -> pb.PlanNode:
    """A scan of Arrow IPC files without any file group yet; `schema` is DataFusion's own encoding of it.

    Statistics stay absent, so that nothing is planned on the belief that the scan is empty.
    """
    made = pb.PlanNode()
    conf = made.arrow_scan.base_conf
    conf.schema = schema
    conf.projection.extend(range(width))
    conf.statistics = b""
    conf.constraints = b""
    conf.object_store_url = LOCAL_STORE
    return made
