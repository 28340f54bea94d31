"""When resident workers can be used: not where they would take every slot of an executor, nor if Spark encrypts."""

from __future__ import annotations

from typing import Any

import pytest

from sparkfusion.config import available_cores
from sparkfusion.runner.spark.feeding import LazyFeedServer
from sparkfusion.runner.spark.master import count_executors, slots_of_executor
from sparkfusion.runner.spark.resident import ResidentWorkers
from tests.suites.spark_context import CLUSTER, Context


@pytest.mark.parametrize(
    ("context", "slots"),
    [
        (Context("local"), 1),
        (Context("local[1]"), 1),
        (Context("local[3]"), 3),
        (Context("local[ 3 , 4 ]"), 3),
        (Context("local[*]"), available_cores()),
        (Context("local[4]", task__cpus="2"), 2),
        (Context("yarn"), 1),
        (Context("k8s://x", executor__cores="4"), 4),
        (Context("yarn", executor__cores="4", task__cpus="3"), 1),
        (Context(CLUSTER, (2, 8)), 8),
        (Context(CLUSTER, (2, 8), task__cpus="2"), 4),
        (Context(CLUSTER, (2, 8), default__parallelism="100"), 0),
        (Context(CLUSTER, (0, 2)), 0),
    ],
    ids=lambda value: value.master if isinstance(value, Context) else str(value),
)
def test_how_many_tasks_an_executor_runs_at_once(context: Any, slots: int) -> None:
    assert slots_of_executor(context) == slots


def test_the_driver_is_an_executor_only_if_the_master_is_local() -> None:
    counts: list[Any] = [Context("local[4]", (0, 2)), Context(CLUSTER, (3, 2)), Context("yarn", (0, 2))]
    assert [count_executors(each) for each in counts] == [1, 3, 0]


def reason(context: Any) -> str | None:
    unused: Any = None
    feeding = LazyFeedServer(lambda: "", lambda: None)
    return ResidentWorkers(context, unused, feeding, unused).why_jobs(None)


def test_the_only_slot_of_an_executor_is_left_to_spark() -> None:
    refused = "an executor runs one task at once, and a resident worker would leave none for Spark jobs"
    assert reason(Context("local[1]")) == refused
    assert reason(Context(CLUSTER, (2, 1))) == refused
    assert reason(Context("local[2]")) is None
    assert reason(Context(CLUSTER, (2, 2))) is None


@pytest.mark.parametrize("name", ["authenticate", "network__crypto__enabled", "ssl__enabled", "ssl__rpc__enabled"])
def test_what_spark_encrypts_does_not_go_out_in_plain(name: str) -> None:
    on: Any = {name: "true"}
    off: Any = {name: "false"}
    found = reason(Context(CLUSTER, **on))
    assert found is not None
    assert "are not encrypted" in found
    assert reason(Context(CLUSTER, **off)) is None
    assert reason(Context("local[2]", **on)) is None
