"""What the machine has, also where it does not tell."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from sparkfusion.config import available_cores, fair_share, machine_memory, task_share


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    machine_memory.cache_clear()
    yield
    machine_memory.cache_clear()


def test_cores_of_a_system_without_cpu_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert available_cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cores() == 1


@pytest.mark.parametrize("error", [ValueError("unrecognized configuration name"), OSError("not supported")])
def test_memory_of_a_system_that_does_not_tell(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(name: str) -> int:
        raise error

    known = machine_memory()
    machine_memory.cache_clear()
    monkeypatch.setattr(os, "sysconf", refuse)
    assert 0 < machine_memory() <= max(known, 4 << 30)


def test_a_task_has_the_share_of_each_of_its_partitions_as_far_as_there_are_slots() -> None:
    assert task_share(1, 4) == fair_share(4)
    assert task_share(3, 4) == 3 * fair_share(4)
    assert task_share(9, 4) == 4 * fair_share(4)
    assert task_share(9, 4, share=0) == 0
