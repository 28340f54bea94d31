"""All 99 TPC-DS queries give their single-node answers at 3 partitions and at 2 or 7, and are really distributed.

A sample does elsewhere, and in `make test`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkfusion.bench.tpc import TPCDS
from sparkfusion.verify import Outcome, verify_query
from tests.conftest import Connect
from tests.runners import FLIGHT, LOCAL, Runner
from tests.suites.differential import FEW_MINUTES, SCALE, SPARK_PARTITIONS, SuiteRun, suite_run

MAY_GIVE_SEVERAL_ROWS = frozenset({6, 44, 54, 58})
"""A scalar subquery that is not seen to give one row at most: only a single node makes several rows an error."""

NEEDS_ORDER = frozenset({70})
"""The plan needs the order of a join's probe side."""

SORTED_BY_A_CONSTANT = {47: (2, 3), 57: (2, 3)}
"""At these partition counts a window's order rests on a filter that is below the exchange."""


LEAST_ALIKE = {
    1: "correlated",
    5: "rollup of unions",
    8: "intersect below joins",
    16: "exists and not exists, distinct aggregates",
    22: "rollup",
    35: "exists or exists",
    38: "intersect",
    49: "union of ranks",
    51: "running windows, full join",
    67: "ranks over a rollup",
    87: "except",
    97: "full join",
}
"""The queries that are least alike."""

FOUR_PARTITIONS = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": 4}

NAMED_TWICE = (1, 2, 14, 23, 30, 36, 47, 57, 59, 64, 65, 81)
"""The queries that contain an aggregate several times, and can be split."""

SAMPLE = {*LEAST_ALIKE, *MAY_GIVE_SEVERAL_ROWS, *NEEDS_ORDER, *SORTED_BY_A_CONSTANT}
"""What `make test` runs in process."""


def undivided(partitions: int) -> frozenset[int]:
    """The queries that are known to run as a whole, each with its reason in `explain`."""
    by_constant = {number for number, counts in SORTED_BY_A_CONSTANT.items() if partitions in counts}
    return MAY_GIVE_SEVERAL_ROWS | NEEDS_ORDER | by_constant


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tpcds")
    TPCDS.generate(directory, SCALE)
    return directory


@pytest.fixture(scope="module")
def tpcds(files: Path, runner: Runner, connect_shared: Connect, request: pytest.FixtureRequest) -> Iterator[SuiteRun]:
    with suite_run(TPCDS, files, runner, connect_shared, request) as run:
        yield run


@pytest.mark.runners(LOCAL, reason=FEW_MINUTES)
@pytest.mark.parametrize(
    ("partitions", "number"),
    [
        pytest.param(partitions, number, marks=[] if partitions == 2 and number in SAMPLE else [pytest.mark.long])
        for number in range(1, TPCDS.query_count + 1)
        for partitions in ((2, 3) if number % 2 or number in SAMPLE else (3, 7))
    ],
)
def test_query_gives_its_single_node_answer(
    tpcds: SuiteRun, partitions: int, number: int, connect_shared: Connect
) -> None:
    tpcds.check(number, partitions, one_task=undivided(partitions))


@pytest.mark.runners(LOCAL, reason="what a plan answers after a decision does not depend on where its tasks run")
@pytest.mark.parametrize("tasks", [0, 1], ids=["split", "whole"])
@pytest.mark.parametrize(
    "number", [pytest.param(number, marks=[] if number in SAMPLE else [pytest.mark.long]) for number in NAMED_TWICE]
)
def test_shared_aggregates_give_the_single_node_answer(
    files: Path, connect_shared: Connect, number: int, tasks: int
) -> None:
    forced = {"sparkfusion.shared_aggregate_bytes": -1, "sparkfusion.tasks": tasks, "sparkfusion.task_cores": 1 + tasks}
    session = connect_shared({**forced, **FOUR_PARTITIONS})
    TPCDS.register(session, files)
    result = verify_query(session, TPCDS.queries()[number])
    assert result.outcome is Outcome.PASSED, result.describe()
    assert result.graph is not None
    assert any(each.startswith("computed once for") for stage in result.graph.stages for each in stage.decisions)


@pytest.mark.long
@pytest.mark.runners(FLIGHT, "spark-local", "spark-spark", reason="all queries at all partition counts are above")
@pytest.mark.parametrize("number", LEAST_ALIKE)
def test_query_gives_its_single_node_answer_elsewhere(tpcds: SuiteRun, number: int, connect_shared: Connect) -> None:
    tpcds.check(number, SPARK_PARTITIONS, one_task=undivided(SPARK_PARTITIONS))
