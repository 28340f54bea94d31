"""A small view of DataFusion's physical plan format: `wire.proto` names the fields that we use, `tree` walks the
plan."""

from sparkfusion.plan.wire.tree import (
    body,
    children,
    copy_of,
    decode,
    encode,
    file_scan_conf,
    kind,
    partition_count,
    rewrite,
    walk,
)
from sparkfusion.plan.wire.wire_pb2 import PlanNode

__all__ = [
    "PlanNode",
    "body",
    "children",
    "copy_of",
    "decode",
    "encode",
    "file_scan_conf",
    "kind",
    "partition_count",
    "rewrite",
    "walk",
]
