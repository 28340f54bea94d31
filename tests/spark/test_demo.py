"""`make demo-spark`, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_the_tour_for_people_with_spark_runs() -> None:
    command = [sys.executable, "-m", "benchmarks.demo_spark"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    for words in (
        "read by DataFusion",
        "written to shop.by_priority: Spark reads 5 rows",
        "ALGERIA",
        "answered: True",
        "same schema: True, same rows: True",
        "why: it has rollup, cube or grouping sets",
        "same answer as Spark's: True",
    ):
        assert words in ended.stdout, ended.stdout
