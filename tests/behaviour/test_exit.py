"""A program ends with its own exit status, whatever its queries are doing then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exits.cases import CASES, KINDS, write_table

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        pytest.param(("--at-once", "12"), len(CASES), id="local"),
        pytest.param(("--at-once", "6", "--on", "flight", "--kinds"), len(KINDS), id="flight", marks=pytest.mark.long),
    ],
)
def test_programs_end_with_their_own_status(arguments: tuple[str, ...], count: int) -> None:
    """Every way to end, many programs at once. Native threads that were inside of Python made some of them crash, or
    end with 0."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.exits.stress", "--runs", "1", *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count(": right") == count


@pytest.mark.parametrize("name", ["failing task", "command: user error"])
def test_failing_programs_fail(name: str, tmp_path: Path) -> None:
    """In an interpreter of their own, from its start."""
    case = next(case for case in CASES if case.name == name)
    write_table(tmp_path / "t")
    ended = subprocess.run(
        [sys.executable, "-c", case.program(), str(tmp_path / "t"), str(tmp_path / "started")],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert case.judge(ended.returncode, ended.stderr) is None, ended.stderr
