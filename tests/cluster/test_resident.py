"""Resident workers in executors of their own: one in each, and what is lost with one is computed again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.cluster.checks import assert_single_node_answer
from tests.cluster.experiment import Answer, Experiment, Fault
from tests.cluster.process import ClusterProcess
from tests.cluster.tables import CONFIG, FUNCTIONS, GROUPED, JOINED

pytestmark = [pytest.mark.long, pytest.mark.timeout(func_only=True)]


def run(
    cluster: ClusterProcess,
    tables: dict[str, str],
    sql: str,
    faults: Mapping[str, Fault] | None = None,
    *,
    kill_after_stage: int | None = None,
    cancel_at: int | None = None,
    workers: int = 0,
    fed: bool = False,
) -> Answer:
    functions = {name: Fault() for name in FUNCTIONS} | dict(faults or {})
    config = {**CONFIG, "sparkfusion.spark_mode": "resident"}
    answer = cluster.ask(
        Experiment(sql, "spark", tables, functions, config, kill_after_stage, cancel_at, fed=fed, workers=workers)
    )
    assert not answer.left, f"the query left behind: {'; '.join(answer.left)}"
    return answer


def test_every_executor_has_one_worker(wide_cluster: ClusterProcess, tables: dict[str, str]) -> None:
    answer = run(wide_cluster, tables, JOINED)
    assert_single_node_answer(answer, JOINED, tables)
    assert "on 2 resident workers with 4 slots: flight://127.0.0." in answer.place
    assert answer.executors_of("mapped") == set(answer.executors)


def test_an_executor_is_lost_in_the_middle_of_a_stage(wide_cluster: ClusterProcess, tables: dict[str, str]) -> None:
    """Spark starts the worker again in the executor that replaces the lost one."""
    answer = run(wide_cluster, tables, JOINED, {"reduced": Fault("executor_killed", on_task=3)}, workers=2)
    assert_single_node_answer(answer, JOINED, tables)
    assert answer.killed is not None
    assert "on 2 resident workers" in answer.place


def test_an_executor_is_lost_between_two_stages(wide_cluster: ClusterProcess, tables: dict[str, str]) -> None:
    answer = run(wide_cluster, tables, GROUPED, kill_after_stage=1, workers=2)
    assert_single_node_answer(answer, GROUPED, tables)
    assert answer.computed_again("mapped") > 0, answer.describe()


def test_a_task_that_ends_its_process_harms_only_itself(wide_cluster: ClusterProcess, tables: dict[str, str]) -> None:
    answer = run(wide_cluster, tables, GROUPED, {"reduced": Fault("worker_killed", on_task=2)})
    assert_single_node_answer(answer, GROUPED, tables)
    assert [failure.retried for failure in answer.failures] == [True], answer.describe()
    assert "on 2 resident workers" in answer.place


def test_feeds_on_resident_workers(wide_cluster: ClusterProcess, tables: dict[str, str]) -> None:
    answer = run(wide_cluster, tables, GROUPED, fed=True)
    assert_single_node_answer(answer, GROUPED, tables)


def test_cancelling_leaves_the_workers(wide_cluster: ClusterProcess, tables: dict[str, str]) -> None:
    answer = run(wide_cluster, tables, GROUPED, {"reduced": Fault("held")}, cancel_at=2)
    assert answer.error is not None
    assert answer.error.startswith("QueryCancelledError"), answer.describe()
    assert "on 2 resident workers" in answer.place


def test_executors_of_one_core_run_queries_as_jobs(cluster: ClusterProcess, tables: dict[str, str]) -> None:
    answer = run(cluster, tables, GROUPED)
    assert_single_node_answer(answer, GROUPED, tables)
    assert "as Spark jobs because an executor runs one task at once" in answer.place
