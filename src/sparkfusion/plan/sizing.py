"""Choose the number of partitions of a query from the bytes that it scans
(docs/adr/0015-distribute-only-what-pays.md)."""

from __future__ import annotations

from sparkfusion.plan.wire import PlanNode, decode, file_scan_conf, kind, walk
from sparkfusion.plan.wire import wire_pb2 as pb

_IN_MEMORY_DISCOUNT = 8
_PYTHON_FUNCTION = b"DFPYUD"  # what marks a Python function, aggregate or window in an encoded plan


def scan_bytes(root: PlanNode) -> int:
    """Bytes of all files and in-memory rows that the plan's leaves read. In-memory rows count by `in_memory_weight`."""
    total = 0
    for node in walk(root):
        conf = file_scan_conf(node)
        if conf is not None:
            total += sum(file_bytes(file) for group in conf.file_groups for file in group.files)
        elif kind(node) == "memory_scan":
            total += in_memory_weight(sum(len(rows) for rows in node.memory_scan.partitions))
    return total


def in_memory_weight(held: int) -> int:
    """The bytes of files that a number of bytes in memory counts for.

    On a single node, rows in memory need no reading, decompressing or decoding. For tasks, they have to be written to
    files. A GROUP BY over 190 MB takes 0.05 s on a single node, and 0.3 s or more in tasks.

    >>> in_memory_weight(80), in_memory_weight(1), in_memory_weight(0)
    (10, 1, 0)
    """
    return -(-held // _IN_MEMORY_DISCOUNT)


def is_light(plan: bytes) -> bool:
    """Whether the work is proportional to the input: the plan has no product of inputs, and no Python function, which
    may take long."""
    if calls_python(plan):
        return False
    return not any(kind(node) in ("cross_join", "nested_loop_join", "unnest") for node in walk(decode(plan)))


def calls_python(plan: bytes) -> bool:
    """Whether a plan calls a Python function, aggregate or window."""
    return _PYTHON_FUNCTION in plan


def file_bytes(file: pb.PartitionedFile) -> int:
    """The bytes of a file, or of the part of it, that a scan reads."""
    return file.range.end - file.range.start if file.HasField("range") else file.size


def choose_partitions(scanned: int, bytes_per_partition: int, upper_bound: int) -> int:
    """The number of partitions for a number of scanned bytes.

    >>> choose_partitions(40, 16, 8), choose_partitions(10**9, 16, 8), choose_partitions(0, 16, 8)
    (3, 8, 1)
    """
    return max(1, min(upper_bound, -(-scanned // bytes_per_partition)))
