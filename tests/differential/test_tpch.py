"""All 22 TPC-H queries give their single-node answers at every partition count, and are really distributed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.tpc import TPCH
from tests.conftest import Connect
from tests.suites.differential import PARTITIONS, SuiteRun, suite_run


@pytest.fixture(scope="module")
def tpch(
    connect_shared: Connect, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[SuiteRun]:
    with suite_run(TPCH, tmp_path_factory.mktemp("tpch"), connect_shared, request) as run:
        yield run


@pytest.mark.parametrize("number", range(1, TPCH.query_count + 1))
@pytest.mark.parametrize("partitions", PARTITIONS)
def test_query_gives_its_single_node_answer(
    tpch: SuiteRun, partitions: int, number: int, connect_shared: Connect
) -> None:
    tpch.check(number, partitions)
