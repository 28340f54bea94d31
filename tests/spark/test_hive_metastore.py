"""Tables of a Hive metastore are found like others. It needs a Spark of its own, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark_session import ROOT


@pytest.mark.long
def test_tables_of_a_hive_metastore_answer_like_spark(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.hive_program", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stderr
    shown = dict(line.split(": ", 1) for line in ran.stdout.splitlines() if ": " in line)
    assert shown["days"].endswith("read by DataFusion")
    assert shown["sourced"].endswith("read by DataFusion")
    assert shown["lines"] == "through Spark, because Spark reads it with a Hive SerDe"
