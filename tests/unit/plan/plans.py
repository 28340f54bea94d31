"""Small plans for the tests of this folder: made by DataFusion from SQL, shown as indented node names."""

from __future__ import annotations

import pyarrow as pa
from datafusion import SessionConfig, SessionContext

from sparkfusion.plan.distribute import ISOLATION_OPTIONS
from sparkfusion.plan.wire import PlanNode, children, decode, kind, partition_count

NO_BROADCAST = {
    "datafusion.optimizer.hash_join_single_partition_threshold": "0",
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": "0",
}


def context(options: dict[str, str] | None = None, *, target_partitions: int = 3) -> SessionContext:
    """Tables `t` (3 partitions) and `u` (2 partitions) in memory, under the options that distribution plans with."""
    config = SessionConfig().with_target_partitions(target_partitions)
    for name, value in {**ISOLATION_OPTIONS, **(options or {})}.items():
        config = config.set(name, value)
    made = SessionContext(config)
    made.register_record_batches("t", [[_rows(i)] for i in range(3)])
    made.register_record_batches("u", [[_rows(i)] for i in range(2)])
    return made


def _rows(start: int) -> pa.RecordBatch:
    return pa.record_batch({"k": [start, start + 1], "v": [start * 10, start * 20], "s": ["a", "b"]})


def plan(sql: str, options: dict[str, str] | None = None, *, target_partitions: int = 3) -> PlanNode:
    made = context(options, target_partitions=target_partitions)
    return decode(made.sql(sql).execution_plan().to_bytes(made))


def shape(node: PlanNode) -> str:
    """One line for each node, children indented, partitions where there are several.

    >>> print(shape(plan("select k from t")))
    memory_scan x3
    """
    return "\n".join(_lines(node, 0))


def _lines(node: PlanNode, depth: int) -> list[str]:
    count = partition_count(node)
    line = "  " * depth + kind(node) + (f" x{count}" if count > 1 else "")
    return [line, *(each for child in children(node) for each in _lines(child, depth + 1))]


def tree(text: str) -> str:
    """A tree as it is written in a test, without the indentation of the test."""
    lines = text.strip("\n").splitlines()
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[margin:].rstrip() for line in lines if line.strip())


def find(node: PlanNode, name: str) -> PlanNode:
    """The first node of that kind, parents first, as a reference."""
    if kind(node) == name:
        return node
    for child in children(node):
        try:
            return find(child, name)
        except LookupError:
            continue
    raise LookupError(f"no {name} in\n{shape(node)}")
