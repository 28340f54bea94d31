"""All TPC-H queries, and the TPC-DS ones that are least alike, give their single-node answers on Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.tpc import TPCDS, TPCH
from tests.conftest import Connect
from tests.suites.differential import SuiteRun, suite_run

PARTITIONS = 3
TPCDS_NUMBERS = (1, 5, 16, 22, 51, 67, 87, 97)
"""Correlated, rollup of unions, distinct aggregates, nested rollup, running windows, ranks, EXCEPT, full join."""


@pytest.fixture(scope="module")
def tpch(
    connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[SuiteRun]:
    with suite_run(TPCH, tmp_path_factory.mktemp("tpch"), connect_shared, request) as run:
        yield run


@pytest.fixture(scope="module")
def tpcds(
    connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[SuiteRun]:
    with suite_run(TPCDS, tmp_path_factory.mktemp("tpcds"), connect_shared, request) as run:
        yield run


@pytest.mark.parametrize("number", range(1, TPCH.query_count + 1))
def test_tpch_query_gives_its_single_node_answer(tpch: SuiteRun, number: int, connect_shared: Connect) -> None:
    tpch.check(number, PARTITIONS)


@pytest.mark.parametrize("number", TPCDS_NUMBERS)
def test_tpcds_query_gives_its_single_node_answer(tpcds: SuiteRun, number: int, connect_shared: Connect) -> None:
    tpcds.check(number, PARTITIONS)
