"""How many CPUs a task may ask Spark for, so that it never waits for an executor that does not exist."""

from __future__ import annotations

from typing import Any

import pytest

from sparkfusion.runner.spark import resident, task_cpus
from sparkfusion.runner.spark.task_cpus import most_cpus, profile_for
from tests.suites.spark_context import CLUSTER, Context

GROWS: dict[str, Any] = {"dynamicAllocation__enabled": "true"}


@pytest.mark.parametrize(
    ("context", "cpus"),
    [
        pytest.param(Context(CLUSTER, executor__cores="4"), 4, id="standalone"),
        pytest.param(Context("yarn", executor__cores="4"), 4, id="YARN"),
        pytest.param(Context("k8s://x", executor__cores="4", task__cpus="2"), 4, id="Kubernetes"),
        pytest.param(Context(CLUSTER, (2, 4)), 1, id="executors that may differ in size"),
        pytest.param(Context("yarn", executor__cores="4", **GROWS), 1, id="dynamic allocation"),
        pytest.param(Context("yarn", executor__cores="4", task__cpus="2", **GROWS), 2, id="two CPUs for every task"),
        pytest.param(Context("local[4]", executor__cores="4"), 1, id="local"),
        pytest.param(Context("mesos://x", executor__cores="4"), 1, id="another master"),
    ],
)
def test_most_cpus(context: Any, cpus: int) -> None:
    assert most_cpus(context) == cpus


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The profile is the number of CPUs in it."""
    monkeypatch.setattr(task_cpus, "_profile", lambda _, cpus: cpus)


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("partitions", "usual", "cpus"), [(1, "1", None), (3, "1", 3), (9, "1", 4), (2, "2", None), (3, "2", 3)]
)
def test_a_task_asks_for_a_cpu_for_each_partition(partitions: int, usual: str, cpus: int | None) -> None:
    context: Any = Context(CLUSTER, executor__cores="4", task__cpus=usual)
    assert profile_for(context, partitions) == cpus


@pytest.mark.usefixtures("asked")
def test_cpus_that_resident_workers_hold_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Workers:
        ended = False

    context: Any = Context(CLUSTER, executor__cores="4")
    first, second = Workers(), Workers()
    monkeypatch.setitem(resident._holders, context, {first, second})
    assert profile_for(context, 4) == 2
    first.ended = True
    assert profile_for(context, 4) == 3
