"""Clusters as docs/deploy.md describes them: a Python that comes as an archive, encrypted connections, Spark's shuffle
service, and executors that come and go."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import datafusion
import pytest

from tests.behaviour.parts import write_parts
from tests.cluster.deployed import DYNAMIC, SHIPPED, SQL
from tests.cluster.process import ClusterProcess

pytestmark = [pytest.mark.long, pytest.mark.timeout(func_only=True)]


def run(kind: str, directory: Path) -> dict[str, Any]:
    process = ClusterProcess(directory / "home", (sys.executable, "-m", "tests.cluster.deployed", kind))
    try:
        process.wait_until_ready()
        found: dict[str, Any] = json.loads(process.hear())
    finally:
        left = process.close()
    assert "raised" not in found, found["raised"]
    assert not left, f"the cluster left behind: {'; '.join(left)}"
    return found


def expected(directory: Path) -> list[dict[str, Any]]:
    context = datafusion.SessionContext()
    context.register_parquet("t", str(write_parts(directory)))
    return context.sql(SQL).to_pylist()


def test_a_shipped_environment_on_a_protected_cluster_that_loses_an_executor(tmp_path: Path) -> None:
    found = run(SHIPPED, tmp_path)
    for each in found["pythons"]:
        assert each["prefix"] == f"{each['directory']}/environment"
        assert each["datafusion"].startswith(each["prefix"])
    rows = expected(tmp_path)
    assert found["fed"] == rows, "tasks reach the feed server, which talks TLS here"
    assert not found["pushes"], "Spark pushes shuffles on YARN only, and shuffles as usual here"
    assert found["killed"] == 1
    assert found["rows"] == rows
    assert found["recomputed"] == 0, "Spark's shuffle service still has the frames of the lost executor"


def test_executors_come_and_go(tmp_path: Path) -> None:
    """Spark releases executors that hold no shuffle: so queries leave none."""
    found = run(DYNAMIC, tmp_path)
    assert found["rows"] == [expected(tmp_path)] * 2
    assert min(found["executors"]) >= 1
