"""Layouts: which shuffle partitions one task reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkfusion.exchange.manifest import FrameFile, Manifest
from sparkfusion.ids import TaskKey
from sparkfusion.plan.stage import Stage
from sparkfusion.runner.adapt import keeps_apart, merge_small_partitions, one_task_per_partition, slices_of
from sparkfusion.runner.query_state import StageState, TaskState


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


def stage_of(partitions: int, per_task: int, *, whole: bool = False) -> Stage:
    made = Stage(1, b"", partitions, (), 1, mergeable=False, deterministic=True)
    return replace(made, partitions_per_task=per_task, whole=whole)


def test_wide_tasks_have_neighbouring_partitions() -> None:
    assert slices_of(stage_of(5, 2)) == ((0, 1), (2, 3), (4,))
    assert slices_of(stage_of(3, 1)) == ((0,), (1,), (2,))


def test_merged_partitions_and_whole_plans_are_not_kept_apart() -> None:
    assert keeps_apart(stage_of(4, 2), ((0, 1), (2, 3)))
    assert not keeps_apart(stage_of(4, 2), ((0, 1, 2), (3,)))
    assert not keeps_apart(stage_of(2, 1), ((0,), (1,)))
    assert not keeps_apart(stage_of(1, 4, whole=True), ((0,),))


def test_a_group_is_one_partition_of_a_wide_task() -> None:
    """Consumers count the partitions of a stage, whatever task has made them."""
    stage = StageState.of(((0, 1), (2, 3), (4,)), apart=True)
    for task, partitions in enumerate(stage.layout):
        files = tuple(FrameFile(f"{partition}.arrow", place, 1, 1) for place, partition in enumerate(partitions))
        stage = stage.with_task(task, TaskState(manifest=Manifest(TaskKey("q", 1, task), files)))
    assert [[file.path for file in stage.files_of_group(group)] for group in range(6)] == [
        *([f"{partition}.arrow"] for partition in range(5)),
        [],
    ]


def test_a_group_is_a_task_where_partitions_are_merged() -> None:
    stage = StageState.of(((0, 1), (2,)))
    files = (FrameFile("merged.arrow", 0, 1, 1),)
    stage = stage.with_task(0, TaskState(manifest=Manifest(TaskKey("q", 1, 0), files)))
    assert [len(stage.files_of_group(group)) for group in range(3)] == [1, 0, 0]


def test_the_bytes_of_a_partition_come_from_all_tasks() -> None:
    files = [
        (FrameFile("/a", 0, 1, 10), FrameFile("/b", 2, 1, 5)),
        (FrameFile("/c", 2, 1, 7), FrameFile("/d", 2, 1, 1)),
    ]
    tasks = tuple(TaskState(manifest=Manifest(TaskKey("q", 1, n), each)) for n, each in enumerate(files))
    state = StageState(((0,), (1,)), tasks)
    assert state.bytes_by_partition == {0: 10, 2: 13}
    assert [task for task, _ in state.files_by_partition[2]] == [0, 1, 1]
    assert state.has_rows
