"""Resident workers: one long job holds them, queries start no others, and nothing of them is left."""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from datafusion import udf
from pyspark.sql import SparkSession

from sparkfusion import ExternalError, Session
from sparkfusion.runner.spark.driver_calls.feed_server import FeedServer
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node, write_parts
from tests.behaviour.probes import Gate, holding_udf, until
from tests.conftest import Connect
from tests.leaks import TASK_PROCESS
from tests.spark.watch import active_jobs, wait_for_no_jobs

RESIDENT = {**DISTRIBUTED, "sparkfusion.spark_mode": "resident"}
GROUPED = "select k, count(*) as n, sum(v) as s from t group by k order by k"


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    return write_parts(tmp_path)


def open_session(connect: Connect, parts: Path, **config: object) -> Session:
    settings = {f"sparkfusion.{name}": value for name, value in config.items()}
    session = connect({**RESIDENT, **settings})
    session.register_parquet("t", parts)
    return session


@pytest.fixture
def session(connect: Connect, parts: Path) -> Session:
    return open_session(connect, parts)


def place_of(session: Session, sql: str = GROUPED) -> str:
    """Where explain says that the tasks of a query run."""
    return str(session.sql(f"explain {sql}").collect()["plan"].to_pylist()[-1].splitlines()[0])


def task_processes() -> list[psutil.Process]:
    """The processes that run tasks, in workers that Spark holds."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if TASK_PROCESS in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_one_long_job_serves_every_query(session: Session, spark: SparkSession) -> None:
    assert place_of(session).endswith("on resident workers")
    assert active_jobs(spark) == []
    assert_distributed_like_single_node(session.sql(GROUPED))
    (held,) = active_jobs(spark)
    assert "on 1 resident worker with 2 slots: flight://127.0.0.1:" in place_of(session)
    for _ in range(3):
        assert_distributed_like_single_node(session.sql(GROUPED))
    assert active_jobs(spark) == [held]
    assert spark.sparkContext.parallelize([held]).map(lambda job: job + 1).collect() == [held + 1]  # Spark has a slot
    later = spark.sparkContext.statusTracker().getJobIdsForGroup(None)
    assert max(later) == held + 1


def test_closing_the_session_ends_the_job_and_its_processes(connect: Connect, parts: Path, spark: SparkSession) -> None:
    session = open_session(connect, parts)
    session.sql(GROUPED).collect()
    processes = task_processes()
    assert processes
    (held,) = active_jobs(spark)
    session.close()
    assert active_jobs(spark) == []
    info = spark.sparkContext.statusTracker().getJobInfo(held)
    assert info is not None
    assert info.status == "SUCCEEDED"  # its tasks ended by themselves: what Spark cancels, it kills
    until(lambda: not any(process.is_running() for process in processes), "processes for tasks have ended")


@pytest.mark.long
def test_idle_workers_end_and_the_next_query_starts_them_again(
    connect: Connect, parts: Path, spark: SparkSession
) -> None:
    session = open_session(connect, parts, resident_idle_seconds=1)
    session.sql(GROUPED).collect()
    first = place_of(session)
    wait_for_no_jobs(spark)
    assert place_of(session).endswith("on resident workers")
    assert_distributed_like_single_node(session.sql(GROUPED))
    assert len(active_jobs(spark)) == 1
    assert place_of(session) != first


@pytest.mark.long
def test_a_query_that_runs_keeps_its_workers(
    connect: Connect, parts: Path, spark: SparkSession, tmp_path: Path
) -> None:
    session = open_session(connect, parts, resident_idle_seconds=1)
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "held"))
        with session.sql("select held(v) as v from t").stream() as query:
            gate.wait_for_arrivals()
            began = time.monotonic()
            until(lambda: time.monotonic() > began + 3.0, "three times as long as idle workers live")
            assert len(active_jobs(spark)) == 1
            gate.open()
            assert sum(batch.num_rows for batch in query) == 4000


@pytest.mark.long
def test_functions_run_in_processes_of_the_worker(session: Session) -> None:
    def parent(values: pa.Array) -> pa.Array:
        return pa.array([os.getppid()] * len(values), pa.int64())

    session.register_udf(udf(parent, [pa.int64()], pa.int64(), "volatile", "parent"))
    (found,) = session.sql("select parent(v) as p from t").collect()["p"].unique().to_pylist()
    assert "pyspark.worker" in " ".join(psutil.Process(found).cmdline())


@pytest.mark.long
def test_a_query_over_a_spark_dataframe_runs_as_jobs(session: Session, spark: SparkSession) -> None:
    session.register_spark("numbers", spark.range(0, 100).selectExpr("id", "id % 7 as k"))
    sql = "select t.k, count(*) as n from t join numbers on t.v = numbers.id group by t.k"
    session.sql(GROUPED).collect()
    assert place_of(session, sql).endswith("as Spark jobs because it reads a Spark DataFrame")
    assert sum(session.sql(sql).collect()["n"].to_pylist()) == 100
    assert "on 1 resident worker" in place_of(session)


@pytest.mark.long
def test_to_spark_works_beside_resident_workers(session: Session) -> None:
    assert session.sql(GROUPED).to_spark().toArrow().num_rows == 7
    assert session.sql(GROUPED).collect().num_rows == 7


@pytest.mark.long
def test_the_last_slot_is_left_to_spark(
    session: Session, connect: Connect, parts: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of two slots, one session holds one; a second one would take the other."""
    session.sql(GROUPED).collect()
    other = open_session(connect, parts)
    with caplog.at_level(logging.WARNING, "sparkfusion"):
        assert_distributed_like_single_node(other.sql(GROUPED))
        assert_distributed_like_single_node(other.sql(GROUPED))
    (warning,) = [record.getMessage() for record in caplog.records if "spark_mode" in record.getMessage()]
    assert "1 of them are held by other sessions" in warning
    assert "as Spark jobs because an executor runs 2 tasks at once" in place_of(other)
    session.close()
    other.sql(GROUPED).collect()
    assert "on 1 resident worker" in place_of(other)


@pytest.mark.long
def test_the_mode_can_be_changed_between_queries(session: Session, spark: SparkSession) -> None:
    session.config["sparkfusion.spark_mode"] = "jobs"
    assert_distributed_like_single_node(session.sql(GROUPED))
    assert active_jobs(spark) == []
    session.sql("set sparkfusion.spark_mode = resident")
    assert_distributed_like_single_node(session.sql(GROUPED))
    assert len(active_jobs(spark)) == 1


@pytest.mark.long
def test_a_worker_that_dies_is_started_again_by_spark(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    """It is the only one, so the query that runs on it fails."""
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "held"))
        with session.sql("select held(v) as v from t").stream() as query:
            gate.wait_for_arrivals()
            processes = task_processes()
            os.kill(processes[0].ppid(), signal.SIGKILL)
            with pytest.raises(ExternalError):
                query.read_all()
    until(lambda: not any(process.is_running() for process in processes), "processes for tasks have ended")
    (held,) = active_jobs(spark)
    until(lambda: bool(task_processes()), "Spark has started the task again")
    assert_distributed_like_single_node(session.sql(GROUPED))
    assert active_jobs(spark) == [held]


@pytest.mark.long
def test_workers_that_cannot_register_are_not_waited_for_again(
    session: Session, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The tasks show a secret that the driver does not know. Spark gives them up after four attempts."""
    monkeypatch.setattr(FeedServer, "add_registry", lambda self, serve: "x" * 43)
    with caplog.at_level(logging.WARNING, "sparkfusion"):
        assert_distributed_like_single_node(session.sql(GROUPED))
    assert active_jobs(spark) == []
    assert "resident workers did not start: a Spark task failed" in caplog.text
    assert "the driver's feed server at 127.0.0.1" in place_of(session)
    caplog.clear()
    assert_distributed_like_single_node(session.sql(GROUPED))
    assert "did not start" not in caplog.text


@pytest.mark.long
def test_a_job_that_the_user_cancels_is_started_again(session: Session, spark: SparkSession) -> None:
    session.sql(GROUPED).collect()
    (held,) = active_jobs(spark)
    spark.sparkContext.cancelAllJobs()
    until(lambda: place_of(session).endswith("on resident workers"), "the loss of the workers is noticed")
    assert_distributed_like_single_node(session.sql(GROUPED))
    (again,) = active_jobs(spark)
    assert again > held
