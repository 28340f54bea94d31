"""All 22 TPC-H queries give their single-node answers at every partition count, and are really distributed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkfusion.bench.tpc import TPCH
from sparkfusion.verify import compare_tables
from tests.conftest import Connect
from tests.runners import FLIGHT, LOCAL, TWO_BY_TWO, Runner
from tests.suites.differential import FEW_MINUTES, SCALE, SPARK_PARTITIONS, SuiteRun, suite_run

NUMBERS = range(1, TPCH.query_count + 1)
TARGET = "datafusion.execution.target_partitions"
NO_COLLECTED_JOINS = {
    "datafusion.optimizer.hash_join_single_partition_threshold": 0,
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": 0,
}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tpch")
    TPCH.generate(directory, SCALE)
    return directory


@pytest.fixture(scope="module")
def tpch(files: Path, runner: Runner, connect_shared: Connect, request: pytest.FixtureRequest) -> Iterator[SuiteRun]:
    with suite_run(TPCH, files, runner, connect_shared, request) as run:
        yield run


@pytest.mark.runners(LOCAL, reason=FEW_MINUTES)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("partitions", [2, 3, *(pytest.param(count, marks=pytest.mark.long) for count in (1, 7))])
def test_query_gives_its_single_node_answer(
    tpch: SuiteRun, partitions: int, number: int, connect_shared: Connect
) -> None:
    tpch.check(number, partitions)


@pytest.mark.runners(LOCAL, reason="what a plan in one task answers does not depend on where the task runs")
@pytest.mark.parametrize("number", NUMBERS)
def test_one_task_gives_the_single_node_answer(files: Path, connect_shared: Connect, number: int) -> None:
    settings = {"sparkfusion.bytes_per_partition": 1, "sparkfusion.tasks": 1, "sparkfusion.task_cores": 0}
    session = connect_shared(settings | {TARGET: 3})
    TPCH.register(session, files)
    query = session.sql(TPCH.queries()[number])
    graph = query.distribution().graph
    assert graph is not None
    assert all(stage.whole for stage in graph.stages)
    assert compare_tables(query.to_datafusion().to_arrow_table(), query.collect()).equal


@pytest.mark.runners(LOCAL, FLIGHT, reason="in process, and where rows cross between machines")
@pytest.mark.sample(LOCAL)
@pytest.mark.parametrize("number", NUMBERS)
def test_two_tasks_of_two_partitions_give_the_single_node_answer(
    files: Path, connect_shared: Connect, number: int
) -> None:
    settings = {"sparkfusion.bytes_per_partition": 1, **TWO_BY_TWO}
    session = connect_shared({**settings, **NO_COLLECTED_JOINS} if number % 2 else settings)
    TPCH.register(session, files)
    query = session.sql(TPCH.queries()[number])
    graph = query.distribution().graph
    assert graph is not None
    assert graph.wide or len(graph.stages) == 1
    assert compare_tables(query.to_datafusion().to_arrow_table(), query.collect()).equal


@pytest.mark.runners(LOCAL, reason="what a plan answers after a decision does not depend on where its tasks run")
@pytest.mark.parametrize("number", NUMBERS)
def test_broadcast_joins_give_the_single_node_answer(files: Path, connect_shared: Connect, number: int) -> None:
    """Every join is planned as a shuffle join, and becomes a broadcast join where that is right."""
    settings = {"sparkfusion.broadcast_bytes": 0, "sparkfusion.adaptive_broadcast_bytes": -1, **NO_COLLECTED_JOINS}
    session = connect_shared({**settings, "sparkfusion.bytes_per_partition": 1, TARGET: 3})
    TPCH.register(session, files)
    query = session.sql(TPCH.queries()[number])
    assert compare_tables(query.to_datafusion().to_arrow_table(), query.collect()).equal


@pytest.mark.runners(LOCAL, reason="what a plan answers after a decision does not depend on where its tasks run")
@pytest.mark.parametrize("tasks", [0, 1], ids=["split", "whole"])
@pytest.mark.parametrize("number", NUMBERS)
def test_key_sets_give_the_single_node_answer(files: Path, connect_shared: Connect, number: int, tasks: int) -> None:
    """Every scan is reduced by every key set that leaves the answer as it is."""
    forced = {"sparkfusion.key_set_bytes": -1, "sparkfusion.tasks": tasks, "sparkfusion.bytes_per_partition": 1}
    session = connect_shared({**forced, **NO_COLLECTED_JOINS, TARGET: 3})
    TPCH.register(session, files)
    query = session.sql(TPCH.queries()[number])
    assert compare_tables(query.to_datafusion().to_arrow_table(), query.collect()).equal


@pytest.mark.runners(LOCAL, reason="what a plan answers after a decision does not depend on where its tasks run")
@pytest.mark.parametrize("tasks", [0, 1], ids=["split", "whole"])
def test_shared_aggregates_give_the_single_node_answer(files: Path, connect_shared: Connect, tasks: int) -> None:
    """Query 15 names its sums twice. They are computed once."""
    forced = {"sparkfusion.shared_aggregate_bytes": -1, "sparkfusion.tasks": tasks, "sparkfusion.task_cores": 1 + tasks}
    session = connect_shared({**forced, "sparkfusion.bytes_per_partition": 1, TARGET: 3})
    TPCH.register(session, files)
    query = session.sql(TPCH.queries()[15])
    assert "decided: computed once for 2 parts" in query.explain_text()
    assert compare_tables(query.to_datafusion().to_arrow_table(), query.collect()).equal


@pytest.mark.runners(LOCAL, reason="what a plan answers after a decision does not depend on where its tasks run")
@pytest.mark.parametrize("decision", ["skew_bytes", "swap_factor"])
@pytest.mark.parametrize("number", NUMBERS)
def test_decisions_about_shuffle_joins_give_the_single_node_answer(
    files: Path, connect_shared: Connect, number: int, decision: str
) -> None:
    """Every join is a shuffle join. Where that is right, every partition is divided by the tasks that wrote it, or the
    sides of every join are swapped."""
    settings = {"sparkfusion.broadcast_bytes": 0, "sparkfusion.adaptive_broadcast_bytes": 0, **NO_COLLECTED_JOINS}
    session = connect_shared(
        {**settings, f"sparkfusion.{decision}": -1, "sparkfusion.bytes_per_partition": 1, TARGET: 3}
    )
    TPCH.register(session, files)
    query = session.sql(TPCH.queries()[number])
    assert compare_tables(query.to_datafusion().to_arrow_table(), query.collect()).equal


@pytest.mark.sample("flight")
@pytest.mark.runners(FLIGHT, "spark-local", "spark-spark", reason="all partition counts are above")
@pytest.mark.parametrize("number", NUMBERS)
def test_query_gives_its_single_node_answer_elsewhere(tpch: SuiteRun, number: int, connect_shared: Connect) -> None:
    tpch.check(number, SPARK_PARTITIONS)
