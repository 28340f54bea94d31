"""News of a task comes while its siblings still run: errors at once, progress, rows; and nothing stays of it."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from datafusion import ScalarUDF, udf
from pyspark.accumulators import Accumulator, _accumulatorRegistry
from pyspark.sql import SparkSession

from sparkfusion import QueryCancelledError, Session, UserError
from sparkfusion.exchange.owned import SharedHome
from sparkfusion.ids import TaskKey
from sparkfusion.observe.events import Event, QueryFinished, TaskFinished
from sparkfusion.runner.spark.spark_task import InPlace, SparkAnswer, StageWiring, pack_answer
from sparkfusion.runner.spark.task_directories import task_directories
from sparkfusion.runner.spark.task_news import TaskNews
from tests.behaviour.parts import DISTRIBUTED, ROWS, TOTAL, assert_usable, record, write_parts
from tests.behaviour.probes import PATIENCE, PROMPT, Gate, holding_udf, until
from tests.conftest import Connect
from tests.runners import ALL_ON_SPARK
from tests.spark.watch import wait_for_no_jobs

QUERIES = {
    "streamed to the reader": "select {0} as v from t",
    "in a shuffle": "select k, sum({0}) as s from t group by k",
}
JOIN = "select count(*) as n from (select {0} as v from t) a join (select v as w from t where v >= 0) b on a.v = b.w"


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.long)])
def session(request: pytest.FixtureRequest, connect: Connect, tmp_path: Path) -> Session:
    session = connect({**DISTRIBUTED, **ALL_ON_SPARK, "sparkfusion.store": request.param})
    session.register_parquet("t", write_parts(tmp_path))
    return session


@pytest.fixture
def gate(session: Session, tmp_path: Path) -> Iterator[Gate]:
    """The second of the four tasks waits here, with one of the two cores."""
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang", where=lambda v: v == ROWS + 1))
        yield gate


@pytest.fixture(autouse=True)
def no_accumulators_left() -> Iterator[None]:
    before = set(_accumulatorRegistry)
    yield
    assert set(_accumulatorRegistry) <= before, "PySpark still knows an accumulator of ours"


def dislikes(value: int) -> ScalarUDF:
    def dislike(values: pa.Array) -> pa.Array:
        if value in values.to_pylist():
            raise ValueError(f"the value {value} is not liked here")
        return values

    return udf(dislike, [pa.int64()], pa.int64(), "volatile", "dislike")


def outcome_of(call: Callable[[], object]) -> object:
    """What a call gives or raises; a failure if it does not end although nobody opens the gate."""
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(call())
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert outcome, "it still waits for a task that is held"
    return outcome[0]


# ---- errors


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_an_error_does_not_wait_for_a_sibling(session: Session, spark: SparkSession, gate: Gate, query: str) -> None:
    session.register_udf(dislikes(2 * ROWS + 5))
    error = outcome_of(lambda: session.sql(query.format("hang(dislike(v))")).collect())
    assert isinstance(error, UserError)
    assert "the value 2005 is not liked here" in error.message
    assert error.where is not None
    assert error.where.task == 2
    wait_for_no_jobs(spark)
    gate.open()
    assert_usable(session)


def test_an_error_does_not_wait_for_a_job_beside_it(session: Session, gate: Gate) -> None:
    """Two stages run at the same time, as many as there are cores."""
    session.register_udf(dislikes(5))
    for name in ("threshold", "threshold_rows"):
        session.config[f"datafusion.optimizer.hash_join_single_partition_{name}"] = 0
    session.config["sparkfusion.broadcast_bytes"] = 0
    frame = session.sql(JOIN.format("hang(dislike(v))"))
    graph = frame.distribution().graph
    assert graph is not None
    assert [stage.inputs for stage in graph.stages][:2] == [(), ()]
    error = outcome_of(frame.collect)
    assert isinstance(error, UserError)
    assert "the value 5 is not liked here" in error.message


# ---- progress and rows


def finished_in(events: list[Event]) -> list[int]:
    """Tasks of the first stage that are said to be done."""
    return sorted(event.key.task for event in events if isinstance(event, TaskFinished) and event.key.stage == 1)


def test_finished_tasks_are_told_while_a_sibling_runs(session: Session, gate: Gate) -> None:
    events = record(session)
    with session.sql("select k, sum(hang(v)) as s from t group by k").stream() as rows:
        until(lambda: finished_in(events) == [0, 2, 3], "three tasks of four are done")
        gate.open()
        assert sum(batch.num_rows for batch in rows) == 7
    assert finished_in(events) == [0, 1, 2, 3], "each is told once"
    assert isinstance(events[-1], QueryFinished)


def test_rows_flow_while_a_sibling_runs(session: Session, gate: Gate) -> None:
    events = record(session)
    early: list[int] = []
    with session.sql("select hang(v) as v from t").stream() as rows:
        while len(early) < 3 * ROWS:
            early += next(rows)["v"].to_pylist()
        assert sorted(early) == [value for value in range(TOTAL) if not ROWS <= value < 2 * ROWS]
        until(lambda: finished_in(events) == [0, 2, 3], "three tasks of four are done")
        gate.open()
        late = [value for batch in rows for value in batch["v"].to_pylist()]
    assert sorted(late) == list(range(ROWS, 2 * ROWS))
    assert finished_in(events) == [0, 1, 2, 3], "each is told once"


def test_a_subscriber_that_takes_its_time_does_not_stop_spark(session: Session, spark: SparkSession) -> None:
    """It may wait for Spark itself: to write down what it was told, to ask for something."""
    told, answered, in_time = threading.Event(), threading.Event(), []

    def wait_for_spark(event: Event) -> None:
        if isinstance(event, TaskFinished) and not told.is_set():
            told.set()
            in_time.append(answered.wait(PROMPT))

    session.subscribe(wait_for_spark)
    running = session.sql("select k, sum(v) as s from t group by k").stream()
    assert told.wait(PATIENCE)
    assert spark.range(5).count() == 5
    answered.set()
    assert sum(batch.num_rows for batch in running) == 7
    assert in_time == [True]


# ---- what stays


@pytest.mark.long
def test_nothing_stays_of_queries_that_do_not_end_well(session: Session, spark: SparkSession, gate: Gate) -> None:
    """The fixture looks for accumulators, everybody's check for threads and files."""
    assert session.sql("select v from t limit 3").collect().num_rows == 3
    running = session.sql("select k, sum(hang(v)) as s from t group by k").stream()
    gate.wait_for_arrivals()
    running.cancel()
    assert isinstance(outcome_of(lambda: list(running)), QueryCancelledError)
    left = session.sql("select hang(v) as v from t").stream()
    gate.wait_for_arrivals()
    left.close()
    wait_for_no_jobs(spark)


def test_a_task_that_comes_too_late_makes_no_directory(tmp_path: Path) -> None:
    """Its query has ended, by an error of a sibling: the home is gone, and must not come back for good."""
    home = SharedHome("query", tmp_path)
    with task_directories(StageWiring(InPlace(), attempts=1, home=str(home.path), memory_home="")) as directories:
        directories.directory("rows")
        home.close()
        with pytest.raises(FileNotFoundError):
            directories.directory("inputs")
    assert list(tmp_path.iterdir()) == []


# ---- the mechanism


def test_news_travels_as_data_and_is_heard_here_only(spark: SparkSession) -> None:
    heard: list[SparkAnswer] = []
    news = TaskNews(spark.sparkContext, heard.append)
    answer = SparkAnswer(TaskKey("query", 1, 2), 7, error=UserError("no"))
    there = on_an_executor(news.sender)
    there.add((pack_answer(answer),))
    there.add((pack_answer(answer),))
    assert heard == [], "there it is only collected"
    news.sender.add(there._value)
    assert [(each.key, each.spark_attempt, str(each.error)) for each in heard] == [(answer.key, 7, "no")] * 2
    assert news.sender.value == (), "nothing is kept here"
    news.close()
    news.close()
    assert news.sender.aid not in _accumulatorRegistry


def on_an_executor(sender: Accumulator[tuple[bytes, ...]]) -> Accumulator[tuple[bytes, ...]]:
    """What arrives of an accumulator where it is not known yet."""
    travelling, here = pickle.dumps(sender), _accumulatorRegistry.pop(sender.aid)
    arrived: Accumulator[tuple[bytes, ...]] = pickle.loads(travelling)
    _accumulatorRegistry[sender.aid] = here
    return arrived


@pytest.mark.long
def test_accumulators_of_the_user_still_count(session: Session, spark: SparkSession) -> None:
    counted = spark.sparkContext.accumulator(0)
    session.sql("select k, sum(v) as s from t group by k").collect()
    spark.sparkContext.parallelize(range(10), 2).foreach(lambda _: counted.add(1))
    assert counted.value == 10
    _accumulatorRegistry.pop(counted.aid)
