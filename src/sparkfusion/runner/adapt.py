"""Which partitions each task of a stage runs: decided when the stage is about to start, from the exact sizes of its
inputs.

See docs/adr/0014-decide-from-exact-sizes.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkfusion.exchange.manifest import bytes_per_partition
from sparkfusion.plan.isolate import Partitions
from sparkfusion.plan.stage import ExchangeKind, Stage
from sparkfusion.runner.query_state import QueryState


def layout_of(state: QueryState, stage: Stage) -> tuple[Partitions, ...]:
    """The partitions of each task of a stage whose inputs are complete."""
    if not stage.mergeable or not state.policy.merge_small_partitions:
        return one_task_per_partition(stage.task_count)
    sizes = [0] * stage.task_count
    for exchange_id in stage.inputs:
        exchange = state.graph.exchange(exchange_id)
        if exchange.kind is ExchangeKind.SHUFFLE and exchange_id not in stage.collects:
            each = bytes_per_partition(state.manifests(exchange.producer), exchange.partitions)
            sizes = [a + b for a, b in zip(sizes, each, strict=True)]
    return merge_small_partitions(sizes, state.policy.bytes_per_partition)


def one_task_per_partition(count: int) -> tuple[Partitions, ...]:
    return tuple((partition,) for partition in range(count))


def merge_small_partitions(sizes: Sequence[int], target: int) -> tuple[Partitions, ...]:
    """Put neighbouring partitions together while they stay under the target; an empty one costs nothing.

    >>> merge_small_partitions([3, 4, 100, 0, 5, 9], target=10)
    ((0, 1), (2, 3), (4,), (5,))
    >>> merge_small_partitions([0, 20, 0], target=1)
    ((0, 1, 2),)
    """
    merged: list[Partitions] = []
    group: tuple[int, ...] = ()
    total = 0
    for partition, size in enumerate(sizes):
        if total > 0 and size > 0 and total + size > target:
            merged.append(group)
            group, total = (), 0
        group += (partition,)
        total += size
    merged.append(group)
    return tuple(merged)
