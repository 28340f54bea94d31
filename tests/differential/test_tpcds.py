"""All 99 TPC-DS queries give their single-node answers at every partition count, and are really distributed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.tpc import TPCDS
from tests.conftest import Connect
from tests.suites.differential import PARTITIONS, SuiteRun, suite_run

WHOLE = frozenset({70})
"""Queries that are not divided: their plan needs the order of a join's probe side."""


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
    tpcds.check(number, partitions, one_task=WHOLE)
