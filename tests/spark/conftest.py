"""One Spark session for all tests of this folder, stopped with its JVM when they are done.

The check for leftovers stays on. The JVM and its first Python workers are there before the first snapshot; only the
daemon's forks may come and go, because Spark decides how many it keeps.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sparkfusion
from sparkfusion import Session
from tests import leaks
from tests.conftest import Connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_WORKER = "-m pyspark.daemon pyspark.worker"
FAST_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="package")
def spark(private_temporary_directory: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two cores, four attempts at a task; the JVM's cheap compiler, because it lives for seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's, about the pandas that is installed
        from sparkfusion.runner.spark.launch import start_local

        settings = {
            "spark.driver.extraJavaOptions": FAST_START,
            "spark.driver.memory": "512m",
            "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
            "spark.executorEnv.PYTHONPATH": str(ROOT),  # functions of tests travel by the name of their module
        }
        session = start_local("local[2,4]", settings)
    yield session
    session.stop()
    _end_jvm()


def _end_jvm() -> None:
    """`stop` ends the Spark context; the JVM would stay until Python exits."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(20)
    SparkContext._gateway = SparkContext._jvm = None


@pytest.fixture(scope="package", autouse=True)
def only_workers_come_and_go(spark: SparkSession) -> Iterator[None]:
    """The one allowance of this folder: forks of Spark's own Python daemon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaks, "_KNOWN_PROCESSES", (*leaks._KNOWN_PROCESSES, SPARK_WORKER))
        yield


@pytest.fixture
def connect(spark: SparkSession) -> Iterator[Connect]:
    """Sessions on the shared Spark session, closed when the test ends."""
    with ExitStack() as stack:
        yield _connector(spark, stack)


@pytest.fixture(scope="module")
def connect_shared(spark: SparkSession, only_workers_come_and_go: None) -> Iterator[Connect]:
    """Like `connect`, for module-scoped fixtures; what is left is looked for when the module is done."""
    before = leaks.take()
    with ExitStack() as stack:
        yield _connector(spark, stack)
    left = leaks.since(before)
    assert not left, f"this module's tests left behind: {'; '.join(left)}"


def _connector(spark: SparkSession, stack: ExitStack) -> Connect:
    def connect(config: Mapping[str, object] | None = None) -> Session:
        return stack.enter_context(sparkfusion.connect(spark, config=dict(config or {})))

    return connect
