"""Whether tasks fit into the memory that Spark's settings give an executor, by arithmetic alone."""

from __future__ import annotations

import logging

import pytest

from sparkfusion.config import MIB, Settings
from sparkfusion.runner.spark.executor_memory import (
    GOOD_TASK,
    MAPPED_BYTES,
    WORKER_BYTES,
    ExecutorBudget,
    ExecutorMemory,
    parse_size,
    read_memory,
)

GIB = 1024 * MIB


def memory(master: str, **conf: str) -> ExecutorMemory:
    """`executor__memory="4g"` is `spark.executor.memory`."""
    return read_memory(master, {f"spark.{name.replace('__', '.')}": value for name, value in conf.items()}.get)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4g", 4 * GIB),
        ("4G", 4 * GIB),
        ("512mb", 512 * MIB),
        ("384", 384 * MIB),
        ("2048k", 2 * MIB),
        ("1t", 1024 * GIB),
        ("100b", 100),
        (" 1 g ", GIB),
        ("much", 0),
        ("4x", 0),
    ],
)
def test_sizes_as_spark_writes_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("conf", "overhead"),
    [
        ({}, 384 * MIB),
        ({"executor__memory": "8g"}, 8 * GIB // 10),
        ({"executor__memory": "8g", "executor__memoryOverheadFactor": "0.5"}, 4 * GIB),
        ({"executor__memory": "8g", "kubernetes__memoryOverheadFactor": "0.5"}, 4 * GIB),
        ({"executor__minMemoryOverhead": "1g"}, GIB),
        ({"executor__memory": "8g", "executor__memoryOverhead": "100m"}, 100 * MIB),
    ],
)
def test_the_overhead_that_spark_takes(conf: dict[str, str], overhead: int) -> None:
    assert memory("yarn", **conf).overhead == overhead


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077", "local-cluster[2,1,512]", ""])
def test_masters_that_enforce_nothing(master: str) -> None:
    found = memory(master, executor__memoryOverhead="1m")
    assert found.find_problem(100 * GIB) is None
    assert found.task_share() == 0, "the machine of the task decides"


@pytest.mark.parametrize("master", ["yarn", "k8s://https://host:6443"])
def test_defaults_leave_nothing_to_python(master: str) -> None:
    found = memory(master, executor__memory="4g", executor__cores="2")
    problem = found.find_problem(0)
    assert problem is not None
    needed = 410 + 2 * (512 + 200)  # the JVM's own, rounded up, and two workers
    assert f"Set spark.executor.memoryOverhead to {needed}m or more" in problem
    assert "a task needs 512m" in problem
    assert "2 tasks" in problem


@pytest.mark.parametrize("chosen", [0, 2 * GIB])
@pytest.mark.parametrize("conf", [{}, {"executor__cores": "4", "task__cpus": "2", "executor__memory": "16g"}])
def test_the_number_that_is_named_suffices_and_no_less_does(chosen: int, conf: dict[str, str]) -> None:
    problem = memory("yarn", **conf).find_problem(chosen)
    assert problem is not None
    needed = int(problem.rsplit("to ", 1)[1].split("m ")[0])
    enough = memory("yarn", executor__memoryOverhead=f"{needed}m", **conf)
    assert enough.find_problem(chosen) is None
    assert enough.task_share() >= (chosen or GOOD_TASK)
    assert memory("yarn", executor__memoryOverhead=f"{needed - 10}m", **conf).find_problem(chosen) is not None


def test_a_task_gets_its_share_of_the_overhead() -> None:
    found = memory("yarn", executor__memory="4g", executor__cores="4", executor__memoryOverhead="8g")
    java = 4 * GIB // 10
    assert found.task_share() == (8 * GIB - java) // 4 - WORKER_BYTES
    assert found.find_problem(found.task_share()) is None
    assert found.find_problem(found.task_share() + MIB) is not None


def test_a_wide_task_gets_the_share_of_its_cpus() -> None:
    found = memory("yarn", executor__memory="4g", executor__cores="4", executor__memoryOverhead="8g")
    java = 4 * GIB // 10
    assert found.task_share(4) == 8 * GIB - java - WORKER_BYTES
    assert found.task_share(1) == found.task_share()
    assert memory("spark://host:7077", executor__cores="4").task_share(4) == 0


def test_memory_of_python_counts_with_the_overhead() -> None:
    found = memory("yarn", executor__memoryOverhead="384m", executor__pyspark__memory="2g")
    assert found.task_share() == 2 * GIB - MAPPED_BYTES
    assert found.find_problem(0) is None


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077"])
def test_a_limit_of_the_address_space_holds_on_every_master(master: str) -> None:
    found = memory(master, executor__cores="2", executor__pyspark__memory="1g", executor__memoryOverhead="8g")
    problem = found.find_problem(0)
    assert problem is not None
    assert "spark.executor.pyspark.memory to 2048m or more" in problem
    assert memory(master, executor__cores="2", executor__pyspark__memory="2g").task_share() == 512 * MIB


def test_a_warning_comes_once_for_each_problem(caplog: pytest.LogCaptureFixture) -> None:
    budget = ExecutorBudget(lambda: memory("yarn"))
    with caplog.at_level(logging.WARNING, "sparkfusion"):
        for chosen in (0, 0, GIB, GIB, 0):
            budget.check(Settings({"sparkfusion.task_memory_bytes": chosen}))
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "a task needs 512m" in caplog.messages[0]
    assert "a task may use 1024m (sparkfusion.task_memory_bytes)" in caplog.messages[1]


def test_what_the_user_sets_is_what_tasks_get() -> None:
    budget = ExecutorBudget(lambda: memory("yarn", executor__memoryOverhead="4g"))
    assert budget.task_memory(Settings({"sparkfusion.task_memory_bytes": 5})) == 5
    assert budget.task_memory(Settings()) == budget.share() > GOOD_TASK


def test_a_wide_task_has_the_memory_of_the_slots_that_it_holds() -> None:
    found = memory("k8s://https://host:6443", executor__cores="4", executor__memoryOverhead="8g")
    java = found.of_java
    assert found.task_share(slots=2) == (8 * GIB - java) // 2 - WORKER_BYTES
    assert found.task_share(slots=4) == found.task_share(slots=9) == 8 * GIB - java - WORKER_BYTES
    budget = ExecutorBudget(lambda: found)
    assert budget.task_memory(Settings(), slots=2) == found.task_share(slots=2)


def test_a_wide_task_is_one_python_worker_whose_address_space_spark_limits() -> None:
    found = memory("yarn", executor__cores="4", executor__memoryOverhead="99g", executor__pyspark__memory="8g")
    assert found.task_share(slots=4) == found.task_share() == 2 * GIB - MAPPED_BYTES
