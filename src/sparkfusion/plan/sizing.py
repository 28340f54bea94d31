"""How many partitions a query is worth (D6): from the bytes it scans, never from a constant."""

from __future__ import annotations

from sparkfusion.plan.wire import PlanNode, decode, file_scan_conf, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb

_PYTHON_FUNCTION = b"DFPYUD"  # what marks a Python function, aggregate or window in an encoded plan


def scan_bytes(root: PlanNode) -> int:
    """Bytes of all files and in-memory rows that the plan's leaves read."""
    total = 0
    for node in walk(root):
        conf = file_scan_conf(node)
        if conf is not None:
            total += sum(_file_bytes(file) for group in conf.file_groups for file in group.files)
        elif kind(node) == "memory_scan":
            total += sum(len(rows) for rows in node.memory_scan.partitions)
    return total


def is_light(plan: bytes) -> bool:
    """Whether work grows with what is read: no product of its inputs, no function of the user's that may take long."""
    if _PYTHON_FUNCTION in plan:
        return False
    return not any(kind(node) in ("cross_join", "nested_loop_join", "unnest") for node in walk(decode(plan)))


def _file_bytes(file: pb.PartitionedFile) -> int:
    return file.range.end - file.range.start if file.HasField("range") else file.size


def choose_partitions(scanned: int, bytes_per_partition: int, upper_bound: int) -> int:
    """Partitions for so many scanned bytes.

    >>> choose_partitions(40, 16, 8), choose_partitions(10**9, 16, 8), choose_partitions(0, 16, 8)
    (3, 8, 1)
    """
    return max(1, min(upper_bound, -(-scanned // bytes_per_partition)))
