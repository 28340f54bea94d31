"""Sessions on Spark Connect: whose session it is, what is asked of the server, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from pyspark.sql.connect.session import SparkSession

import sparkfusion
from sparkfusion import Session, UserError
from sparkfusion.runner.spark import environment
from sparkfusion.runner.spark.connect import application
from sparkfusion.runner.spark.connect.application import ConnectApplication
from sparkfusion.runner.spark.connect.connect_runner import open_server_session
from sparkfusion.runner.spark.connect.task_rows import ask_tasks
from sparkfusion.versions import describe_environment
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, write_parts
from tests.conftest import Connect
from tests.connect_server import address_of, open_beside
from tests.runners import ALL_ON_SPARK
from tests.suites.fake_s3 import fake_s3

pytestmark = pytest.mark.long  # it starts a server with a JVM of its own

GROUPED = "select k, count(*) as n from t group by k"


def test_a_query_runs_on_the_server_and_the_users_session_stays_open(
    remote_spark: SparkSession, tmp_path: Path
) -> None:
    with sparkfusion.connect(remote_spark, config=DISTRIBUTED | ALL_ON_SPARK) as session:
        session.register_parquet("t", write_parts(tmp_path))
        assert "for the whole plan" in session.sql(GROUPED).explain_text()
        assert_distributed_like_single_node(session.sql(GROUPED))
    assert remote_spark.range(3).count() == 3


def test_explain_says_where_tasks_run(session: Session) -> None:
    assert (
        "on Spark Connect 127.0.0.1 (local[2,4]), frames on this machine's disk" in session.sql(GROUPED).explain_text()
    )
    session.sql("set sparkfusion.spark_mode = resident")
    assert "as Spark jobs because Spark Connect has no resident workers" in session.sql(GROUPED).explain_text()


def test_tasks_and_partitions_follow_sparks_cores(connect: Connect) -> None:
    assert connect().config["datafusion.execution.target_partitions"] == "2"


@pytest.mark.long
def test_two_sessions_of_one_server(session: Session, remote_spark: SparkSession, tmp_path: Path) -> None:
    """Each has its own DataFrames; closing one stops nothing of the other."""
    other = open_beside(remote_spark)
    try:
        (tmp_path / "other").mkdir()
        with sparkfusion.connect(other, config=DISTRIBUTED) as second:
            second.register_parquet("t", write_parts(tmp_path / "other"))
            with pytest.raises(UserError, match="belongs to another Spark application"):
                second.register_spark("r", remote_spark.range(3))
            rows = session.sql("select v from t").stream()
            next(rows)
            assert second.sql(GROUPED).collect().num_rows == 7
    finally:
        other.stop()
    assert sum(batch.num_rows for batch in rows) > 0
    assert session.sql(GROUPED).collect().num_rows == 7


def test_a_stopped_session_is_refused(remote_spark: SparkSession) -> None:
    other = open_beside(remote_spark)
    other.stop()
    with pytest.raises(UserError, match="the Spark Connect session is stopped"):
        sparkfusion.connect(other)


def test_an_old_server_is_refused() -> None:
    with pytest.raises(UserError, match=r"the Spark Connect server runs Spark 4\.0\.2, and sparkfusion needs 4\.1"):
        open_server_session(SimpleNamespace(is_stopped=False, version="4.0.2"))


# ---- the package on the executors


@pytest.mark.long
def test_the_package_is_shipped_to_tasks(remote_spark: SparkSession) -> None:
    """Really: the tasks of the session get the zip on their path."""
    other = open_beside(remote_spark)

    def shipped() -> Any:
        def look(numbers: Iterable[int]) -> Iterator[bool]:
            yield any(path.endswith(".zip") and "sparkfusion-" in path for path in sys.path)

        return look

    try:
        assert list(ask_tasks(other, 2, shipped())) == [False, False]
        ConnectApplication(other)._ship()
        assert list(ask_tasks(other, 2, shipped())) == [True, True]
    finally:
        other.stop()


def test_executors_with_other_versions_are_refused(remote_spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    here = describe_environment()
    monkeypatch.setattr(environment, "describe_environment", lambda: {**here, "datafusion": "1.2.3"})
    monkeypatch.setattr(application, "_found", WeakKeyDictionary())
    with pytest.raises(UserError, match=r"different package versions: datafusion .* \(driver: 1\.2\.3\)") as caught:
        ConnectApplication(remote_spark).check()
    assert "start the Connect server with PYSPARK_PYTHON" in (caught.value.hint or "")


# ---- stores


@pytest.mark.long
def test_a_shared_directory_holds_the_frames(connect: Connect, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    settings = {"sparkfusion.store": "shared", "sparkfusion.store_dir": str(store)}
    session = connect({**DISTRIBUTED, **settings})
    session.register_parquet("t", write_parts(tmp_path))
    assert_distributed_like_single_node(session.sql(GROUPED))
    assert "shared by all executors" in session.sql(GROUPED).explain_text()
    assert list(store.iterdir()) == []


@pytest.mark.long
def test_a_bucket_holds_frames_and_rows_of_dataframes(
    connect: Connect, remote_spark: SparkSession, tmp_path: Path
) -> None:
    with fake_s3() as server:
        session = connect({**DISTRIBUTED, "sparkfusion.store_dir": server.url("frames")})
        session.register_parquet("t", write_parts(tmp_path))
        session.register_spark("r", remote_spark.range(0, 100, 1, 3))
        joined = "select r.id % 2 as odd, count(*) as n from r join t on r.id = t.v group by 1 order by 1"
        assert session.sql(joined).to_pylist() == [{"odd": 0, "n": 50}, {"odd": 1, "n": 50}]
        assert any("PUT" in request and "/table-" in request for request in server.requests)
        assert [tuple(row) for row in session.sql(joined).to_spark().collect()] == [(0, 50), (1, 50)]
        assert server.names() == []


def test_a_directory_that_tasks_do_not_reach(connect: Connect, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a server of another machine: nothing is there that this program wrote."""
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    monkeypatch.setattr(ConnectApplication, "is_near", lambda self: False)
    assert "so intermediate data cannot be stored" in session.sql(GROUPED).explain_text()
    with pytest.raises(UserError, match="no directory is shared with the tasks of Spark Connect at 127") as caught:
        session.sql(GROUPED).collect()
    assert "set sparkfusion.store_dir" in (caught.value.hint or "")


def test_no_place_is_found_by_looking(
    remote_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert ConnectApplication(remote_spark).is_near()
    monkeypatch.setattr(application, "_found", WeakKeyDictionary())
    far = ConnectApplication(remote_spark)
    monkeypatch.setattr("sparkfusion.runner.spark.reach._TOKEN", "another.arrow")  # as in another file system
    monkeypatch.setattr("sparkfusion.runner.spark.reach._write", lambda place, name, data: None)
    assert not far.is_near()


def test_the_shuffle_of_spark_is_refused(connect: Connect, tmp_path: Path) -> None:
    session = connect({**DISTRIBUTED, **{"sparkfusion.store": "spark"}})
    session.register_parquet("t", write_parts(tmp_path))
    with pytest.raises(UserError, match="Spark Connect gives no access to Spark's shuffle"):
        session.sql(GROUPED).collect()


# ---- a program as users write it

PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
import sparkfusion
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
on_spark = {"sparkfusion.bytes_per_partition": 1, "sparkfusion.small_stage_bytes": 0}
with sparkfusion.connect(spark, config=on_spark) as session:
    session.register_parquet("t", sys.argv[2])
    session.register_spark("r", spark.range(0, 100, 1, 3))
    out = session.sql("select count(*) as n from r join t on r.id = t.v where r.id < 50").to_spark()
    print(out.collect()[0]["n"])
print(spark.range(3).count())
"""


@pytest.mark.long
def test_a_program_with_a_session_of_the_builder(remote_spark: SparkSession, tmp_path: Path) -> None:
    """There, PySpark's own functions and DataFrames are those of Spark Connect."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, address_of(remote_spark), str(write_parts(tmp_path))],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["50", "3"]


def test_settings_in_the_configuration_of_the_spark_session(remote_spark: SparkSession) -> None:
    remote_spark.conf.set("spark.sparkfusion.slots", "4")
    try:
        with sparkfusion.connect(remote_spark) as session:
            assert session.config["sparkfusion.slots"] == "4"
            assert session.config.source_of("sparkfusion.slots") == "spark.sparkfusion.slots"
    finally:
        remote_spark.conf.unset("spark.sparkfusion.slots")
