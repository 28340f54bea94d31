"""What fails in a task on Spark Connect: the same errors as on a classic session, from the same codec."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession

import sparkfusion
from sparkfusion import ExternalError, QueryCancelledError, Session, SparkfusionError, TaskCrashError, UserError
from sparkfusion.observe.events import StageFinished, TaskFailed, TaskFinished
from tests.behaviour.parts import DISTRIBUTED, assert_usable, record, write_parts
from tests.behaviour.probes import Counter, Gate, holding_udf
from tests.connect_server import open_beside
from tests.runners import ALL_ON_SPARK, SPLIT
from tests.spark.troubles import flaky_disk, killed, troubled, user_mistake

pytestmark = pytest.mark.long  # it starts a server with a JVM of its own

SHUFFLED = "select k, sum(trouble(v)) as s from t group by k"


def test_an_error_of_a_users_function_is_not_retried(session: Session, tmp_path: Path) -> None:
    counter = Counter(tmp_path / "count")
    session.register_udf(troubled(counter, user_mistake, always=True))
    events = record(session)
    with pytest.raises(UserError, match="the value 0 is not liked here") as caught:
        session.sql(SHUFFLED).collect()
    assert caught.value.where is not None
    assert (caught.value.where.stage, caught.value.where.task) == (1, 0)
    assert counter.value == 1
    assert [event.retried for event in events if isinstance(event, TaskFailed)] == [False]
    assert_usable(session)


@pytest.mark.long
def test_the_last_of_sparks_attempts_tells_its_error(session: Session, tmp_path: Path) -> None:
    counter = Counter(tmp_path / "count")
    session.register_udf(troubled(counter, flaky_disk, always=True))
    with pytest.raises(ExternalError, match="the disk hiccups") as caught:
        session.sql(SHUFFLED).collect()
    assert counter.value == 4, "the master of the tests makes four attempts"
    assert caught.value.where is not None
    assert_usable(session)


@pytest.mark.long
def test_spark_tries_again_when_a_worker_dies(session: Session, tmp_path: Path) -> None:
    counter = Counter(tmp_path / "count")
    session.register_udf(troubled(counter, killed))
    found = session.sql(SHUFFLED).collect()
    assert counter.value == 2
    assert sum(found.columns[-1].to_pylist()) == sum(range(4000))
    assert_usable(session)


@pytest.mark.long
def test_a_worker_that_always_dies_fails_the_query(session: Session, tmp_path: Path) -> None:
    counter = Counter(tmp_path / "count")
    session.register_udf(troubled(counter, killed, always=True))
    with pytest.raises(TaskCrashError, match=r"Python worker that ran the task died, after Spark tried it 4") as caught:
        session.sql(SHUFFLED).collect()
    assert caught.value.where is not None
    assert caught.value.where.task == 0
    assert_usable(session)


def test_frames_that_are_lost_fail_the_query(session: Session) -> None:
    """Files of a store do not come back by themselves: a message says what is missing."""

    def lose(event: object) -> None:
        if isinstance(event, StageFinished) and event.stage == 1:
            (job,) = session._engine._runner._jobs  # type: ignore[attr-defined]
            for path in Path(job._store.directory).rglob("*.arrow"):
                path.unlink()

    end = session.subscribe(lose)
    with pytest.raises(SparkfusionError, match=r"frames.*arrow not found") as caught:
        session.sql("select k, count(*) as n from t group by k").collect()
    end()
    assert caught.value.where is not None
    assert caught.value.where.stage == 2
    assert_usable(session)


def test_answers_arrive_while_their_job_runs(session: Session, tmp_path: Path) -> None:
    """Those of the first tasks; the last one is held until the others are known."""
    seen = threading.Event()
    events = record(session)
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang", where=lambda value: value == 3999))
        session.subscribe(lambda event: seen.set() if isinstance(event, TaskFinished) else None)
        running = session.sql("select hang(v) as v from t").stream()
        gate.wait_for_arrivals()
        assert seen.wait(60)
        assert sum(isinstance(event, TaskFinished) for event in events) < 4
        gate.open()
        assert sum(batch.num_rows for batch in running) == 4000


def test_cancel_stops_this_query_only(session: Session, remote_spark: SparkSession, tmp_path: Path) -> None:
    """The tag is the query's: another operation of the same Spark session goes on."""
    found: list[int] = []
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang"))
        running = session.sql("select k, sum(hang(v)) as s from t group by k").stream()
        gate.wait_for_arrivals()
        slow = "select sum(length(repeat('x', cast(id % 100 as int)))) as n from range(0, 2000000)"
        beside = threading.Thread(target=lambda: found.append(remote_spark.sql(slow).collect()[0][0]))
        beside.start()
        running.cancel()
        with pytest.raises(QueryCancelledError):
            list(running)
        beside.join(60)
    assert found == [99_000_000]
    assert_usable(session)


@pytest.mark.long
def test_a_spark_session_that_is_stopped_ends_its_queries(remote_spark: SparkSession, tmp_path: Path) -> None:
    other = open_beside(remote_spark)
    with Gate(tmp_path) as gate, sparkfusion.connect(other, config={**DISTRIBUTED, **SPLIT, **ALL_ON_SPARK}) as session:
        session.register_parquet("t", write_parts(tmp_path))
        session.register_udf(holding_udf(gate, "hang"))
        running = session.sql("select k, sum(hang(v)) as s from t group by k").stream()
        gate.wait_for_arrivals()
        other.stop()
        with pytest.raises((QueryCancelledError, ExternalError)):
            list(running)
