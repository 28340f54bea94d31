"""How much of a plan's input is rows that are already in this process's memory, found without encoding them.

Encoding a plan copies the rows of its in-memory tables (0.9 s for 190 MB), so it is done only for queries that are
distributed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice

from datafusion import SessionConfig, SessionContext
from datafusion.plan import ExecutionPlan

SHOW_SIZES = {"datafusion.explain.show_sizes": "true"}
"""Options of the context that made a plan whose leaves `memory_bytes` is asked about."""

_MEMORY_SCAN = re.compile(r"DataSourceExec: partitions=\d+, partition_sizes=\[([\d, ]*)\]")
_SAMPLED = 4
_ANY_ROWS = 2**31


def leaves(plan: ExecutionPlan) -> Iterator[ExecutionPlan]:
    """The nodes of a plan that have no input, from left to right."""
    below = plan.children()
    if not below:
        yield plan
    for child in below:
        yield from leaves(child)


def survey(plan: ExecutionPlan) -> tuple[int, list[ExecutionPlan]]:
    """About how many bytes of rows in memory a plan reads, and its leaves that read anything else."""
    held, others = 0, []
    for leaf in leaves(plan):
        size = memory_bytes(leaf)
        if size is None:
            others.append(leaf)
        else:
            held += size
    return held, others


def memory_bytes(leaf: ExecutionPlan) -> int | None:
    """About how many bytes of rows a scan of an in-memory table returns; None for any other node.

    Estimated from the first batches of each partition: looking at every batch takes as long as a small query.
    """
    found = _MEMORY_SCAN.match(leaf.display())
    if found is None:
        return None
    counts = [int(count) for count in found[1].split(",") if count.strip()]
    total = 0
    for partition, batches in enumerate(counts):
        seen = [batch.to_pyarrow().nbytes for batch in islice(whole_batches().execute(leaf, partition), _SAMPLED)]
        total += sum(seen) * max(batches, len(seen)) // max(1, len(seen))
    return total


@cache
def whole_batches() -> SessionContext:
    """A context in which scans return batches unchanged, however large, and not in slices."""
    return SessionContext(SessionConfig().with_batch_size(_ANY_ROWS))
