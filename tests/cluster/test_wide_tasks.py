"""Tasks with several cores of an executor: Spark reserves them, and the answer is the single-node answer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.cluster.checks import assert_single_node_answer
from tests.cluster.experiment import Answer, Experiment, Fault, Store
from tests.cluster.process import ClusterProcess
from tests.cluster.tables import CONFIG, FUNCTIONS, GROUPED, GROUPED_TWICE, JOINED

pytestmark = [pytest.mark.long, pytest.mark.timeout(func_only=True)]

CORES = 2
"""Of each of the two executors."""


def run(
    cluster: ClusterProcess,
    tables: dict[str, str],
    sql: str,
    faults: Mapping[str, Fault] | None = None,
    store: Store = "shared",
    partitions: int = 4,
    **settings: object,
) -> Answer:
    functions = {name: Fault() for name in FUNCTIONS} | dict(faults or {})
    ours = {f"sparkfusion.{name}": value for name, value in settings.items()}
    config = CONFIG | {"datafusion.execution.target_partitions": partitions} | ours
    answer = cluster.ask(Experiment(sql, store, tables, functions, config))
    assert not answer.left, f"the query left behind: {'; '.join(answer.left)}"
    assert_single_node_answer(answer, sql, tables)
    return answer


def count_tasks(answer: Answer, stage: int) -> int:
    return len({report.task for report in answer.reports if report.stage == stage})


@pytest.mark.parametrize(
    ("query", "reduced"),
    [
        pytest.param(GROUPED_TWICE, CORES, id="grouped twice"),
        pytest.param(JOINED, 1, id="joined"),  # rows of its last stage are streamed
    ],
)
def test_a_task_has_all_cores_of_its_executor(
    wide_cluster: ClusterProcess, tables: dict[str, str], query: str, reduced: int
) -> None:
    answer = run(wide_cluster, tables, query, merge_small_partitions=False)
    assert answer.cpus_of("mapped") == {CORES}, answer.describe()
    assert answer.cpus_of("reduced") == {reduced}, answer.describe()
    assert answer.executors_of("mapped") == set(answer.executors)
    assert count_tasks(answer, stage=1) == 2  # of two partitions each


def test_spark_runs_one_such_task_at_once_on_an_executor(wide_cluster: ClusterProcess, tables: dict[str, str]) -> None:
    """Also if there are more partitions than cores: these come in waves."""
    answer = run(wide_cluster, tables, GROUPED, partitions=8, merge_small_partitions=False)
    assert answer.cpus_of("mapped") == answer.cpus_of("reduced") == {CORES}, answer.describe()
    assert answer.most_at_once("mapped") == answer.most_at_once("reduced") == 1, answer.describe()
    assert count_tasks(answer, stage=2) == 4


def test_tasks_of_one_partition_by_hand(wide_cluster: ClusterProcess, tables: dict[str, str]) -> None:
    answer = run(wide_cluster, tables, GROUPED, task_cores=1)
    assert answer.cpus_of("mapped") == answer.cpus_of("reduced") == {1}


def test_no_task_asks_for_more_cores_than_an_executor_has(wide_cluster: ClusterProcess, tables: dict[str, str]) -> None:
    """It would wait for ever."""
    answer = run(wide_cluster, tables, GROUPED, task_cores=3, tasks=2, merge_small_partitions=False)
    assert answer.cpus_of("mapped") == answer.cpus_of("reduced") == {CORES}


def test_one_task_for_a_whole_plan(wide_cluster: ClusterProcess, tables: dict[str, str]) -> None:
    answer = run(wide_cluster, tables, GROUPED, store="spark", tasks=1)
    assert answer.cpus_of("mapped") == answer.cpus_of("reduced") == {CORES}
    assert len(answer.reports) == 1, answer.describe()


def test_frames_in_sparks_shuffle_have_tasks_of_one_partition(
    wide_cluster: ClusterProcess, tables: dict[str, str]
) -> None:
    answer = run(wide_cluster, tables, GROUPED, store="spark")
    assert answer.cpus_of("mapped") == answer.cpus_of("reduced") == {1}


def test_an_executor_is_lost_in_the_middle_of_a_stage(wide_cluster: ClusterProcess, tables: dict[str, str]) -> None:
    answer = run(wide_cluster, tables, GROUPED, {"mapped": Fault("executor_killed", on_task=2)})
    assert answer.killed is not None
    assert answer.cpus_of("mapped") == {CORES}
