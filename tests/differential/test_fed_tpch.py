"""All 22 TPC-H queries over feeds that list the tables' files give the single-node answers over registered tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkfusion.bench.tpc import TPCH
from sparkfusion.verify import Outcome, verify_query
from tests.conftest import Connect
from tests.suites.differential import SCALE
from tests.suites.fed import FedSession, register_fed

PARTITIONS = 3


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("fed-tpch")
    TPCH.generate(directory, SCALE)
    return directory


@pytest.fixture(scope="module")
def session(files: Path, connect_shared: Connect) -> FedSession:
    options = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": PARTITIONS}
    plain, fed = connect_shared(options), connect_shared(options)
    TPCH.register(plain, files)
    register_fed(fed, files)
    return FedSession(plain, fed)


@pytest.mark.sample("local")
@pytest.mark.runners("local", "flight", "spark-local", reason="units do not go through stores")
@pytest.mark.parametrize("number", range(1, TPCH.query_count + 1))
def test_fed_query_gives_its_single_node_answer(session: FedSession, number: int, connect_shared: Connect) -> None:
    result = verify_query(session, TPCH.queries()[number], name=f"fed tpch q{number}")
    assert result.outcome is Outcome.PASSED, f"{result.describe()}\n{TPCH.queries()[number]}"
