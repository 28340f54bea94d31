"""One Spark cluster for all tests of this folder, in a process of its own: a process can have one Spark context only.

The check for leftovers stays on. The cluster is there before the first snapshot; executors and Python workers come and
go, because tests kill them. When the cluster's process has ended, nothing of it may be left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import pytest

from tests import leaks
from tests.cluster.experiment import Answer, Experiment, Fault, Store
from tests.cluster.probes import EXECUTOR
from tests.cluster.process import ClusterProcess
from tests.cluster.tables import CONFIG, FUNCTIONS, write_tables
from tests.spark_session import DAEMON

STORES: tuple[Store, ...] = ("shared", "spark")

SPARK_WORKER = f"-m {DAEMON} pyspark.worker"


@pytest.fixture(scope="package")
def cluster(private_temporary_directory: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    process = ClusterProcess(tmp_path_factory.mktemp("cluster") / "home")
    try:
        process.wait_until_ready()
        yield process
    finally:
        left = process.close()
    assert not left, f"the cluster left behind: {'; '.join(left)}"


@pytest.fixture(scope="package")
def wide_cluster(
    private_temporary_directory: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterProcess]:
    """Executors of two cores."""
    process = ClusterProcess(tmp_path_factory.mktemp("wide-cluster") / "home", cores=2)
    try:
        process.wait_until_ready()
        with leaks.known_processes(EXECUTOR, SPARK_WORKER):
            yield process
    finally:
        left = process.close()
    assert not left, f"the cluster left behind: {'; '.join(left)}"


@pytest.fixture(scope="package")
def executors_come_and_go(cluster: ClusterProcess) -> Iterator[None]:
    """The one allowance of this folder."""
    with leaks.known_processes(EXECUTOR, SPARK_WORKER):
        yield


@pytest.fixture(scope="package")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return write_tables(tmp_path_factory.mktemp("tables"))


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Store:
    """Where frames are between two stages."""
    found: Store = request.param
    return found


class Run(Protocol):
    """Runs a query on the cluster, with faults by the name of the function that has them."""

    def __call__(
        self,
        sql: str,
        faults: Mapping[str, Fault] | None = None,
        *,
        kill_after_stage: int | None = None,
        cancel_at: int | None = None,
        fed: Mapping[str, object] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> Answer:
        """`fed`: its tables are feeds, under these settings. `settings`: others that it needs."""
        ...


@pytest.fixture
def run(cluster: ClusterProcess, executors_come_and_go: None, tables: dict[str, str], store: Store) -> Run:
    """Whatever happens to a query, it leaves nothing."""

    def run(
        sql: str,
        faults: Mapping[str, Fault] | None = None,
        *,
        kill_after_stage: int | None = None,
        cancel_at: int | None = None,
        fed: Mapping[str, object] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> Answer:
        functions = {name: Fault() for name in FUNCTIONS} | dict(faults or {})
        config = {**CONFIG, **(fed or {}), **(settings or {})}
        asked = Experiment(sql, store, tables, functions, config, kill_after_stage, cancel_at, fed is not None)
        answer = cluster.ask(asked)
        assert not answer.left, f"the query left behind: {'; '.join(answer.left)}"
        return answer

    return run
