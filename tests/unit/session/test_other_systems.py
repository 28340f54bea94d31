"""Queries in process on a system that lacks what only Linux has: CPU sets, /dev/shm, /proc, renameat2.

This simulates it on Linux. It is no proof for macOS, where nobody has run the tests.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import sparkfusion
from sparkfusion.config import machine_limits, machine_memory
from sparkfusion.exchange import store
from sparkfusion.session import stacks
from sparkfusion.transport.process import supervised

GROUPED = "select k % 7 as k, count(*) as n from t group by 1 order by 1"
EXPECTED = [{"k": key, "n": len(range(key, 1000, 7))} for key in range(7)]


@pytest.fixture(autouse=True)
def _another_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(store, "SHARED_MEMORY", tmp_path / "no shared memory")
    monkeypatch.setattr(stacks, "_THREADS", tmp_path / "no threads")
    for module in (machine_limits, supervised):
        monkeypatch.setattr(module, "PROCESSES", tmp_path / "no processes")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    machine_memory.cache_clear()
    stacks.has_roomy_stacks.cache_clear()
    yield
    machine_memory.cache_clear()
    stacks.has_roomy_stacks.cache_clear()


@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_tasks_pass_rows_to_each_other(processes: bool) -> None:
    config = {
        "sparkfusion.bytes_per_partition": 1,
        "sparkfusion.tasks": 2,
        "sparkfusion.require_distributed": True,
        "sparkfusion.task_processes": processes,
    }
    with sparkfusion.connect(config=config) as session:
        session.from_pydict({"k": list(range(1000))}, name="t")
        assert session.sql(GROUPED).to_pylist() == EXPECTED


def test_a_directory_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "written"
    with sparkfusion.connect() as session:
        for rows in (5, 3):
            frame = session.from_pydict({"k": list(range(rows))})
            frame.write_parquet(str(target), mode="overwrite")
        session.register_parquet("again", str(target))
        assert session.table("again").count() == 3
    assert [path.name for path in tmp_path.iterdir()] == ["written"]
