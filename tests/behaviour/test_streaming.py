"""Rows reach the reader while producers run; a reader that stops stops them."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from sparkfusion import QueryCancelledError, RunningQuery, Session
from sparkfusion.observe.events import Event, QueryFailed, StageFinished, StageStarted, TaskFinished
from tests.behaviour.parts import (
    DISTRIBUTED,
    PARTS,
    ROWS,
    TOTAL,
    assert_usable,
    record,
    rows_of,
    single_node,
    write_parts,
)
from tests.behaviour.probes import PATIENCE, PROMPT, Counter, Gate, counting_udf, holding_udf, until
from tests.conftest import Connect
from tests.runners import LOCAL, Runner

pytestmark = pytest.mark.sample("local", "flight")  # rows reach the consumer in different ways; on Spark, some do

SMALL_FRAMES = {**DISTRIBUTED, "datafusion.execution.batch_size": 10, "sparkfusion.slots": PARTS}


@pytest.fixture
def session(connect: Connect, tmp_path: Path) -> Session:
    session = connect(SMALL_FRAMES)
    session.register_parquet("t", write_parts(tmp_path))
    return session


@pytest.mark.sample("local", "flight", "spark-local")
def test_rows_come_while_another_task_still_runs(session: Session, tmp_path: Path) -> None:
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hold_last", where=lambda v: v >= (PARTS - 1) * ROWS))
        events = record(session)
        with session.sql("select hold_last(v) as v from t").stream() as rows:
            first = next(rows)
            assert first.num_rows > 0
            finished = {event.key.task for event in events if isinstance(event, TaskFinished)}
            assert PARTS - 1 not in finished
            gate.open()
            assert first.num_rows + sum(batch.num_rows for batch in rows) == TOTAL


@pytest.mark.runners("local", "flight", reason="on Spark a task's rows come when it is done")
def test_first_rows_of_a_task_come_before_its_last_are_made(session: Session, tmp_path: Path) -> None:
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hold_ends", where=lambda v: v % ROWS == ROWS - 1))
        with session.sql("select hold_ends(v) as v from t").stream() as rows:
            assert next(rows).num_rows > 0
            gate.open()
            assert sum(batch.num_rows for batch in rows) > 0


def test_arrow_stream_export_flows_too(session: Session, tmp_path: Path) -> None:
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hold_last", where=lambda v: v >= (PARTS - 1) * ROWS))
        reader = pa.RecordBatchReader.from_stream(session.sql("select hold_last(v) as v from t"))
        first = reader.read_next_batch()
        gate.open()
        assert first.num_rows + reader.read_all().num_rows == TOTAL


@pytest.mark.parametrize(
    "query",
    [
        "select v + 1 as w from t",
        "select k, sum(v) as s from t group by k",
        "select a.k, count(*) as n from t a join t b on a.v = b.v group by a.k",
        "select * from t order by v desc",
        "select v from t limit 37 offset 11",
    ],
)
def test_one_waiting_frame_is_enough(session: Session, query: str) -> None:
    session.config["sparkfusion.channel_frames"] = 1
    frame = session.sql(query)
    found = frame.collect()
    if "limit" in query:
        assert found.num_rows == 37
    else:
        assert rows_of(found) == rows_of(single_node(frame))


def test_one_slot_is_enough(session: Session) -> None:
    session.config["sparkfusion.slots"] = 1
    session.config["sparkfusion.channel_frames"] = 1
    frame = session.sql("select a.k, count(*) as n from t a join t b on a.v = b.v group by a.k")
    assert rows_of(frame.collect()) == rows_of(single_node(frame))


@pytest.mark.runners("local", reason="on Spark what tasks make waits in the store; over Flight, in buffers of some MB")
def test_reader_that_stops_reading_stops_the_producers(session: Session, tmp_path: Path) -> None:
    session.config["sparkfusion.channel_frames"] = 1
    counter = Counter(tmp_path / "count")
    session.register_udf(counting_udf(counter, "counted"))
    with session.sql("select counted(v) as v from t").stream() as rows:
        first = next(rows)
        _wait_until_still(counter)
        assert counter.value < TOTAL / 2, "producers ran on while nobody read"
        read = first.num_rows + sum(batch.num_rows for batch in rows)
    assert read == TOTAL
    assert counter.value == TOTAL


@pytest.mark.sample("local", "flight", "spark-local")
def test_limit_cancels_producers_once_it_has_its_rows(session: Session, tmp_path: Path) -> None:
    session.config["sparkfusion.channel_frames"] = 1
    counter = Counter(tmp_path / "count")
    session.register_udf(counting_udf(counter, "counted"))
    frame = session.sql("select counted(v) as v from t where counted(v) >= 0 limit 5")
    assert frame.collect().num_rows == 5
    assert counter.value < TOTAL


@pytest.mark.sample("local", "flight", "spark-local")
def test_early_closed_stream_stops_everything(session: Session, runner: Runner, tmp_path: Path) -> None:
    session.config["sparkfusion.channel_frames"] = 1
    counter = Counter(tmp_path / "count")
    session.register_udf(counting_udf(counter, "counted"))
    events = record(session)
    rows = session.sql("select counted(v) as v from t").stream()
    next(rows)
    started = time.monotonic()
    rows.close()
    assert time.monotonic() - started < PROMPT
    _wait_until_still(counter)  # a batch that is being computed is finished
    made = counter.value
    if runner.name == LOCAL:  # on Spark a stage is one job: what its tasks make waits in the store
        assert made < TOTAL / 2
    assert [event.cancelled for event in events if isinstance(event, QueryFailed)] == [True]
    with pytest.raises(QueryCancelledError):
        next(rows)
    rows.close()
    assert_usable(session)
    assert counter.value == made


def test_a_close_by_another_thread_never_makes_a_stream_look_complete(session: Session) -> None:
    session.config["sparkfusion.channel_frames"] = 1
    events = record(session)
    rows = session.sql("select v + 1 from t").stream()
    next(rows)

    def stop() -> None:
        rows.cancel()
        rows.close()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(QueryCancelledError):
        list(rows)
    stopper.join()
    with pytest.raises(QueryCancelledError):
        list(rows)
    assert [event.cancelled for event in events if isinstance(event, QueryFailed)] == [True]


def test_a_stream_that_was_read_to_its_end_stays_at_its_end(session: Session) -> None:
    rows = session.sql("select v from t limit 5").stream()
    assert sum(batch.num_rows for batch in rows) == 5
    rows.close()
    assert list(rows) == []


@pytest.mark.runners("local", reason="who drives a query does not depend on the runner")
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_stream_forgotten_on_its_own_driver_thread_is_stopped(session: Session) -> None:
    """The collector may run on any thread: here a subscriber lets go of the stream on the driver's."""
    streams: list[RunningQuery] = []
    begun, dropped = threading.Event(), threading.Event()

    def drop(event: Event) -> None:
        if isinstance(event, StageFinished) and begun.wait(PATIENCE) and streams:
            assert threading.current_thread().name.endswith("-coordinator")
            streams.clear()
            dropped.set()

    session.subscribe(drop)
    streams.append(session.sql("select k, sum(v) as s from t group by k").stream())
    begun.set()
    assert dropped.wait(PATIENCE)
    assert_usable(session)


def test_close_does_not_wait_for_a_function_that_hangs(session: Session, tmp_path: Path) -> None:
    with Gate(tmp_path) as gate:
        session.register_udf(holding_udf(gate, "hang"))
        rows = session.sql("select k, sum(hang(v)) from t group by k").stream()
        gate.wait_for_arrivals()
        started = time.monotonic()
        rows.close()
        assert time.monotonic() - started < PROMPT


def test_forgotten_stream_is_stopped(session: Session, tmp_path: Path) -> None:
    session.config["sparkfusion.channel_frames"] = 1
    events = record(session)
    rows = session.sql("select v + 1 from t").stream()
    next(rows)
    del rows
    gc.collect()
    until(lambda: any(isinstance(event, QueryFailed) and event.cancelled for event in events), "the query's end")
    assert_usable(session)


def test_forgotten_arrow_stream_is_stopped(session: Session) -> None:
    session.config["sparkfusion.channel_frames"] = 1
    events = record(session)
    reader = pa.RecordBatchReader.from_stream(session.sql("select v + 1 from t"))
    reader.read_next_batch()
    del reader
    gc.collect()
    until(lambda: any(isinstance(event, QueryFailed) and event.cancelled for event in events), "the query's end")


@pytest.mark.sample("local", "flight", "spark-local")
def test_closing_the_session_ends_an_open_stream_with_an_error(connect: Connect, tmp_path: Path) -> None:
    session = connect(SMALL_FRAMES | {"sparkfusion.channel_frames": 1})
    session.register_parquet("t", write_parts(tmp_path))
    rows = session.sql("select v + 1 from t").stream()
    next(rows)
    session.close()
    with pytest.raises(QueryCancelledError):
        list(rows)


def test_closing_the_session_never_makes_a_stream_look_complete(connect: Connect, tmp_path: Path) -> None:
    """All tasks are done, their last frames still wait for the reader when the session is closed."""
    session = connect(DISTRIBUTED | {"sparkfusion.channel_frames": 100})
    session.register_parquet("t", write_parts(tmp_path))
    done = threading.Event()
    session.subscribe(lambda event: done.set() if isinstance(event, StageFinished) else None)
    rows = session.sql("select v + 1 from t").stream()
    assert done.wait(PATIENCE)
    first = next(rows)
    session.close()
    try:
        read = first.num_rows + sum(batch.num_rows for batch in rows)
    except QueryCancelledError:
        return
    assert read == TOTAL, "rows are missing and there was no error"


def test_a_query_may_run_while_another_is_being_read(session: Session) -> None:
    session.config["sparkfusion.channel_frames"] = 1
    outer = 0
    with session.sql("select v from t where v >= 0").stream() as rows:
        for number, batch in enumerate(rows):
            outer += batch.num_rows
            if number < 3:
                inner = session.sql("select k, count(*) as n from t group by k").to_pylist()
                assert sum(row["n"] for row in inner) == TOTAL
    assert outer == TOTAL


def test_threads_may_use_one_session_at_once(session: Session) -> None:
    answers: dict[int, int] = {}
    barrier = threading.Barrier(4)

    def ask(number: int) -> None:
        barrier.wait(PATIENCE)
        for _ in range(3):
            frame = session.sql(f"select k, sum(v) as s from t where v % 4 = {number} group by k")
            answers[number] = sum(row["s"] for row in frame.to_pylist())

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert answers == {number: sum(range(number, TOTAL, 4)) for number in range(4)}


def test_independent_stages_run_at_the_same_time(session: Session, tmp_path: Path) -> None:
    """Both sides of a join are held at gates: each arrives only if it does not wait for the other."""
    session.config["sparkfusion.slots"] = 2 * PARTS
    with Gate(tmp_path, "left") as left, Gate(tmp_path, "right") as right:
        session.register_udf(holding_udf(left, "hold_left", where=lambda v: v == 0))
        session.register_udf(holding_udf(right, "hold_right", where=lambda v: v == 0))
        events = record(session)
        frame = session.sql(
            "select count(*) as n from (select k, sum(hold_left(v)) as s from t group by k) a"
            " join (select k, sum(hold_right(v)) as s from t group by k) b on a.k = b.k and a.s = b.s"
        )
        with frame.stream() as rows:
            left.wait_for_arrivals()
            right.wait_for_arrivals()
            started = {event.stage for event in events if isinstance(event, StageStarted)}
            finished = {event.stage for event in events if isinstance(event, StageFinished)}
            assert len(started - finished) >= 2
            left.open()
            right.open()
            assert next(rows).to_pylist() == [{"n": 7}]


def test_a_consumer_starts_only_after_its_producers_are_complete(session: Session) -> None:
    events = record(session)
    session.sql("select k, count(*) as n from t group by k").collect()
    order = [(type(event).__name__, event.stage) for event in events if isinstance(event, StageStarted | StageFinished)]
    assert order.index(("StageFinished", 1)) < order.index(("StageStarted", 2))


def _wait_until_still(counter: Counter) -> None:
    """Wait until a count has not changed for a while: that something does *not* happen has no event to wait for."""
    deadline = time.monotonic() + PATIENCE
    still = threading.Event()
    seen = -1
    while seen != counter.value and time.monotonic() < deadline:
        seen = counter.value
        still.wait(0.2)
