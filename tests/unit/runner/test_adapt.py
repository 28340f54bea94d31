"""Layouts: which shuffle partitions one task reads."""

from __future__ import annotations

import pytest

from sparkfusion.runner.adapt import merge_small_partitions, one_task_per_partition


def test_one_task_per_partition() -> None:
    assert one_task_per_partition(3) == ((0,), (1,), (2,))


@pytest.mark.parametrize(
    ("sizes", "target", "layout"),
    [
        ([5, 5, 5], 10, ((0, 1), (2,))),
        ([5, 6, 5], 10, ((0,), (1,), (2,))),
        ([100], 10, ((0,),)),
        ([0, 0, 0], 10, ((0, 1, 2),)),
        ([20, 0, 0, 20, 0], 10, ((0, 1, 2), (3, 4))),
        ([1, 1, 1], 1, ((0,), (1,), (2,))),
    ],
)
def test_merge_small_partitions(sizes: list[int], target: int, layout: tuple[tuple[int, ...], ...]) -> None:
    assert merge_small_partitions(sizes, target) == layout


@pytest.mark.parametrize("target", [1, 7, 100])
def test_every_partition_is_read_exactly_once(target: int) -> None:
    sizes = [3, 0, 9, 50, 0, 0, 2, 2, 7]
    layout = merge_small_partitions(sizes, target)
    assert [partition for group in layout for partition in group] == list(range(len(sizes)))
