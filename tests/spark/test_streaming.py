"""Plain selects stream task by task; a reader that stops, or a cancel, stops Spark's jobs and leaves nothing."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sparkfusion import QueryCancelledError, Session
from tests.behaviour.parts import DISTRIBUTED, ROWS, assert_usable, write_parts
from tests.behaviour.probes import PROMPT, Counter, Gate, counting_udf, holding_udf
from tests.conftest import Connect
from tests.spark.watch import active_jobs, homes_on_disk_and_in_memory, wait_for_no_jobs

HELD = {
    "streamed to the reader": "select hang(v) as v from t",
    "in a shuffle": "select k, sum(hang(v)) as s from t group by k",
    "in the head": "select hang(s) as s from (select sum(v) as s from t where v >= 0)",
}


@pytest.fixture
def session(connect: Connect, tmp_path: Path) -> Session:
    session = connect({**DISTRIBUTED, "datafusion.execution.batch_size": 100})
    session.register_parquet("t", write_parts(tmp_path))
    return session


def test_limit_stops_the_tasks_that_are_not_needed(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    first = tmp_path / "first"

    def comes_late(_: int) -> bool:
        """For all workers but the one that asks first."""
        with suppress(FileExistsError):
            first.symlink_to(str(os.getpid()))
        return first.readlink().name != str(os.getpid())

    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hold_others", where=comes_late))
        frame = session.sql("select hold_others(v) as v from t limit 200")
        graph = frame.distribution().graph
        assert graph is not None
        assert graph.head.streams
        assert graph.stages[0].task_count > 1
        assert frame.collect().num_rows == 200
        wait_for_no_jobs(spark)
    assert session.sql("select v from t limit 1500 offset 10").collect().num_rows == 1500


@pytest.mark.parametrize("query", HELD.values(), ids=HELD)
def test_a_stream_that_is_closed_early(session: Session, spark: SparkSession, tmp_path: Path, query: str) -> None:
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang"))
        running = session.sql(query).stream()
        gate.wait_for_arrivals()
        assert homes_on_disk_and_in_memory()
        begun = time.monotonic()
        running.close()
        assert time.monotonic() - begun < PROMPT
        wait_for_no_jobs(spark)
        assert homes_on_disk_and_in_memory() == []
    assert_usable(session)
    assert homes_on_disk_and_in_memory() == []


def test_a_job_on_its_way_to_the_scheduler_is_cancelled_too(
    session: Session, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancel comes when Spark does not know the job yet: it must not run to its end unseen."""
    context = spark.sparkContext
    parallelize, cancelled, at_parallelize = context.parallelize, threading.Event(), threading.Event()
    cancel_jobs = context.cancelJobsWithTag

    def late(*args: object) -> object:
        at_parallelize.set()
        assert cancelled.wait(PROMPT)
        return parallelize(*args)  # type: ignore[arg-type]

    def cancel_early(tag: str) -> None:
        cancel_jobs(tag)
        cancelled.set()

    monkeypatch.setattr(context, "parallelize", late)
    monkeypatch.setattr(context, "cancelJobsWithTag", cancel_early)
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang"))
        running = session.sql("select k, sum(hang(v)) as s from t group by k").stream()
        assert at_parallelize.wait(PROMPT)
        begun = time.monotonic()
        running.close()
        assert time.monotonic() - begun < PROMPT
        assert active_jobs(spark) == []


@pytest.mark.long
def test_no_further_job_starts_after_a_close(session: Session, spark: SparkSession, tmp_path: Path) -> None:
    counter = Counter(tmp_path / "count")
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang", where=lambda v: v % ROWS == 0))
        session.register_udf(counting_udf(counter, "counted"))
        with session.sql("select counted(hang(v)) as v from t").stream():
            gate.wait_for_arrivals(2)  # both slots; two more tasks wait
        wait_for_no_jobs(spark)
    assert counter.value <= 2 * ROWS
    assert_usable(session)


def test_spark_that_does_not_cancel_does_not_hang_the_reader(
    session: Session, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The user stopped Spark meanwhile: cancelling raises, and the reader still learns how its query ended."""
    cancel_jobs, tries = spark.sparkContext.cancelJobsWithTag, []

    def refuse_first(tag: str) -> None:
        tries.append(tag)
        if len(tries) == 1:
            raise RuntimeError("Spark is gone")
        cancel_jobs(tag)

    monkeypatch.setattr(spark.sparkContext, "cancelJobsWithTag", refuse_first)
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang"))
        with session.sql("select k, sum(hang(v)) as s from t group by k").stream() as rows:
            gate.wait_for_arrivals()
            rows.cancel()
            with pytest.raises(QueryCancelledError):
                next(rows)
    assert len(tries) > 1


def test_a_closed_session_stops_its_queries(connect: Connect, spark: SparkSession, tmp_path: Path) -> None:
    session = connect(DISTRIBUTED)
    session.register_parquet("t", write_parts(tmp_path))
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang"))
        running = session.sql("select hang(v) as v from t").stream()
        gate.wait_for_arrivals()
        session.close()
        wait_for_no_jobs(spark)
        with pytest.raises(QueryCancelledError):
            next(running)
