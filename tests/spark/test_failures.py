"""What fails in a task: the user's mistakes come back at once, everything else is tried again by Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkfusion import (
    ExternalError,
    InternalError,
    QueryCancelledError,
    Session,
    TaskCrashError,
    UserError,
    WorkerLostError,
)
from sparkfusion.ids import TaskKey
from sparkfusion.observe.events import TaskFailed
from sparkfusion.runner.spark.master import attempts_of
from sparkfusion.runner.spark.spark_errors import spark_error
from tests.behaviour.parts import DISTRIBUTED, PARTS, ROWS, assert_usable, record, write_parts
from tests.behaviour.probes import Counter
from tests.conftest import Connect
from tests.spark.troubles import flaky_disk, killed, troubled, user_mistake

QUERIES = {
    "streamed to the reader": "select trouble(v) as v from t",
    "in a shuffle": "select k, sum(trouble(v)) as s from t group by k",
}


@pytest.fixture
def session(connect: Connect, tmp_path: Path) -> Session:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    return session


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_an_error_of_a_users_function_is_not_retried(session: Session, tmp_path: Path, query: str) -> None:
    counter = Counter(tmp_path / "count")
    session.register_udf(troubled(counter, user_mistake, always=True))
    events = record(session)
    with pytest.raises(UserError, match="the value 0 is not liked here") as caught:
        session.sql(query).collect()
    assert caught.value.where is not None
    assert counter.value == 1
    assert [event.retried for event in events if isinstance(event, TaskFailed)] == [False]
    assert_usable(session)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_spark_tries_again_when_a_worker_dies(session: Session, tmp_path: Path, query: str) -> None:
    counter = Counter(tmp_path / "count")
    session.register_udf(troubled(counter, killed))
    found = session.sql(query).collect()
    assert counter.value == 2
    assert sum(found.columns[-1].to_pylist()) == sum(range(PARTS * ROWS))
    assert_usable(session)


def test_the_last_attempt_tells_its_error(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    """With its kind, its words and its task; and the coordinator does not multiply Spark's attempts."""
    counter = Counter(tmp_path / "count")
    session.register_udf(troubled(counter, flaky_disk, always=True))
    with pytest.raises(ExternalError, match="the disk hiccups") as caught:
        session.sql(QUERIES["in a shuffle"]).collect()
    assert counter.value == attempts_of(spark.sparkContext) == 4
    assert caught.value.where is not None
    assert caught.value.where.stage == 1
    assert_usable(session)


@pytest.mark.long
def test_a_worker_that_always_dies_fails_the_query(session: Session, tmp_path: Path) -> None:
    counter = Counter(tmp_path / "count")
    session.register_udf(troubled(counter, killed, always=True))
    with pytest.raises(TaskCrashError, match=r"Python worker that ran the task died, after Spark tried it 4") as caught:
        session.sql(QUERIES["in a shuffle"]).collect()
    assert counter.value == 4
    assert caught.value.where is not None
    assert caught.value.hint is not None
    assert_usable(session)


@pytest.mark.long
def test_a_worker_that_dies_twice_fails_the_query_where_spark_tries_once(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on any worker with task processes. Of the tasks in the job, the one that ended them is blamed."""
    monkeypatch.setattr("sparkfusion.runner.spark.spark_job.attempts_of", lambda _: 1)
    counter = Counter(tmp_path / "count")
    session.register_udf(troubled(counter, killed, always=True))
    events = record(session)
    with pytest.raises(TaskCrashError, match="not retried after 2 such attempts") as caught:
        session.sql(QUERIES["in a shuffle"]).collect()
    assert counter.value == 8, "Spark of the tests makes four attempts of each"
    failed = [event for event in events if isinstance(event, TaskFailed)]
    assert caught.value.where is not None
    assert {each.key.task for each in failed if each.message.startswith("the Python worker")} == {
        caught.value.where.task
    }


def test_where_spark_tries_once_the_coordinator_tries_again(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`local[2]` gives a task one attempt."""
    monkeypatch.setattr("sparkfusion.runner.spark.spark_job.attempts_of", lambda _: 1)
    counter = Counter(tmp_path / "count")
    session.register_udf(troubled(counter, flaky_disk))
    events = record(session)
    found = session.sql(QUERIES["in a shuffle"]).collect()
    assert sum(found["s"].to_pylist()) == sum(range(PARTS * ROWS))
    assert counter.value == 2
    assert [event.retried for event in events if isinstance(event, TaskFailed)] == [True]


class _JavaError(Exception):
    def __init__(self, text: str) -> None:
        self.java_exception = text


CRASH = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 3.0 failed 4 times, most "
    "recent failure: Lost task 1.3 in stage 3.0 (TID 12) (host executor 2): ExecutorLostFailure (executor 2 exited)\n"
    "Driver stacktrace:"
)


def test_what_spark_says_becomes_an_error_of_ours() -> None:
    keys = [TaskKey("q", 3, number) for number in range(2)]
    lost = spark_error(_JavaError(CRASH), keys)
    assert isinstance(lost, WorkerLostError)
    assert lost.message == (
        "the executor that ran the task was lost, after Spark tried it 4 times: ExecutorLostFailure (executor 2 exited)"
    )
    assert lost.hint is not None
    assert lost.where == keys[1]
    cancelled = "org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 7 cancelled part of cancelled job tag x"
    assert isinstance(spark_error(_JavaError(cancelled), keys), QueryCancelledError)
    told = spark_error(_JavaError("Traceback\n  File x\nValueError: my order was cancelled\n\tat org.x"), keys)
    assert (type(told), told.message) == (ExternalError, "a Spark task failed: ValueError: my order was cancelled")
    ours = InternalError("a defect")
    assert spark_error(ours, keys) is ours
