"""All 99 TPC-DS queries give their single-node answers at every partition count, and are really distributed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.tpc import TPCDS
from tests.conftest import Connect
from tests.suites.differential import PARTITIONS, SuiteRun, suite_run

MAY_GIVE_SEVERAL_ROWS = frozenset({6, 44, 54, 58})
"""A scalar subquery that is not seen to give one row at most: only a single node makes several rows an error."""

NEEDS_ORDER = frozenset({70})
"""The plan needs the order of a join's probe side."""

SORTED_BY_A_CONSTANT = {47: (2, 3), 57: (2, 3)}
"""At these partition counts a window's order rests on a filter that is below the exchange."""


def undivided(partitions: int) -> frozenset[int]:
    """The queries that are known to run as a whole, each with its reason in `explain`."""
    by_constant = {number for number, counts in SORTED_BY_A_CONSTANT.items() if partitions in counts}
    return MAY_GIVE_SEVERAL_ROWS | NEEDS_ORDER | by_constant


@pytest.fixture(scope="module")
def tpcds(
    connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[SuiteRun]:
    with suite_run(TPCDS, tmp_path_factory.mktemp("tpcds"), connect_shared, request) as run:
        yield run


@pytest.mark.parametrize("number", range(1, TPCDS.query_count + 1))
@pytest.mark.parametrize("partitions", PARTITIONS)
def test_query_gives_its_single_node_answer(
    tpcds: SuiteRun, partitions: int, number: int, connect_shared: Connect
) -> None:
    tpcds.check(number, partitions, one_task=undivided(partitions))
