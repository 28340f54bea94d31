"""Which partitions each task of a stage runs: decided when the stage is about to start, from the exact sizes of its
inputs.

See docs/adr/0014-decide-from-exact-sizes.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from sparkfusion.ids import ExchangeId
from sparkfusion.plan.isolate import Partitions
from sparkfusion.plan.stage import ExchangeKind, Stage
from sparkfusion.runner.query_state import QueryState


def layout_of(state: QueryState, stage: Stage) -> tuple[Partitions, ...]:
    """The partitions of each task of a stage whose inputs are complete. If small ones are merged, no task is wide."""
    wide = slices_of(stage)
    if not stage.mergeable or not state.policy.merge_small_partitions:
        return wide
    sizes = [sum(each) for each in zip(*shuffle_sizes(state, stage).values(), strict=True)]
    merged = merge_small_partitions(sizes or [0] * stage.task_count, state.policy.bytes_per_partition)
    return merged if len(merged) < stage.task_count else wide


def shuffle_sizes(state: QueryState, stage: Stage) -> dict[ExchangeId, list[int]]:
    """The bytes of each partition of the shuffles that are divided among the tasks of a stage."""
    found = {}
    for exchange in (state.graph.exchange(each) for each in stage.inputs if each not in stage.collects):
        if exchange.kind is ExchangeKind.SHUFFLE:
            written = state.stage(exchange.producer).bytes_by_partition
            found[exchange.id] = [written.get(partition, 0) for partition in range(exchange.partitions)]
    return found


def one_task_per_partition(count: int) -> tuple[Partitions, ...]:
    return tuple((partition,) for partition in range(count))


def slices_of(stage: Stage) -> tuple[Partitions, ...]:
    """The partitions of each task, if none are merged."""
    width = stage.partitions_per_task
    return tuple(
        tuple(range(first, min(first + width, stage.task_count))) for first in range(0, stage.task_count, width)
    )


def keeps_apart(stage: Stage, layout: tuple[Partitions, ...]) -> bool:
    """Whether the partitions of a task stay partitions of its plan and of its output."""
    return stage.partitions_per_task > 1 and not stage.whole and layout == slices_of(stage)


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
