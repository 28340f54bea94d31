"""Events tell the whole story of a query, in order; a subscriber cannot disturb it."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import datafusion
import pyarrow as pa
import pytest

from sparkfusion import RunningQuery, Session, UserError
from sparkfusion.observe.events import (
    Event,
    QueryFailed,
    QueryFinished,
    QueryPlanned,
    StageFinished,
    StageStarted,
    TaskFailed,
    TaskFinished,
    TaskRunning,
    TaskStarted,
)
from sparkfusion.runner import coordinated_job
from tests.behaviour.parts import PARTS, TOTAL, names_of, record
from tests.behaviour.probes import PATIENCE
from tests.runners import FLIGHT, LOCAL, RESIDENT, Runner

pytestmark = pytest.mark.sample("local", "flight")

QUERY = "select k, count(*) as n from t group by k"


@pytest.mark.sample("local", "flight", "spark-local")  # Spark reports its tasks in another way
def test_story_of_a_distributed_query(session: Session) -> None:
    events = record(session)
    session.sql(QUERY).collect()
    planned, finished = events[0], events[-1]
    assert isinstance(planned, QueryPlanned)
    assert isinstance(finished, QueryFinished)
    assert planned.reason is None
    assert planned.stages == 2
    assert planned.tasks >= PARTS + 1
    assert finished.rows == 7
    assert len({event.query for event in events}) == 1
    for stage in (1, 2):
        started = next(i for i, e in enumerate(events) if isinstance(e, StageStarted) and e.stage == stage)
        ended = next(i for i, e in enumerate(events) if isinstance(e, StageFinished) and e.stage == stage)
        tasks = [i for i, e in enumerate(events) if isinstance(e, TaskStarted | TaskFinished) and e.key.stage == stage]
        assert started < min(tasks)
        assert max(tasks) < ended
    first = next(event for event in events if isinstance(event, StageStarted))
    assert first.tasks == len([e for e in events if isinstance(e, TaskFinished) and e.key.stage == 1])


def test_rows_and_bytes_of_tasks_add_up_to_their_stage(session: Session) -> None:
    events = record(session)
    session.sql(QUERY).collect()
    for stage in (1, 2):
        tasks = [event for event in events if isinstance(event, TaskFinished) and event.key.stage == stage]
        (whole,) = (event for event in events if isinstance(event, StageFinished) and event.stage == stage)
        assert whole.rows == sum(task.rows for task in tasks)
        assert whole.bytes == sum(task.bytes for task in tasks)
        assert all(task.seconds > 0 for task in tasks)


@pytest.mark.sample("local", "flight", "spark-local")  # Spark reports its tasks in another way
def test_tasks_tell_when_and_where_they_ran(session: Session, runner: Runner) -> None:
    events = record(session)
    session.sql(QUERY).collect()
    ordered = {event.key: event.at for event in events if isinstance(event, TaskStarted)}
    tasks = [event for event in events if isinstance(event, TaskFinished) and event.key.stage]
    assert len(tasks) >= PARTS + 1
    for task in tasks:
        assert ordered[task.key] <= task.started_at <= task.started_at + task.seconds <= task.at
    workers = {task.worker for task in tasks}
    if runner.name == LOCAL:
        assert workers == {""}
    elif runner.name.startswith(FLIGHT):
        assert all(worker.startswith("flight://127.0.0.1:") for worker in workers)
        begun = {event.key: event.worker for event in events if isinstance(event, TaskRunning)}
        assert all(begun[task.key] == task.worker for task in tasks)
    elif runner.name == RESIDENT:
        assert all(":" in worker for worker in workers)
    else:
        assert workers == {socket.gethostname()}


def test_story_of_a_query_that_is_not_distributed(session: Session) -> None:
    session.config["sparkfusion.enabled"] = False
    events = record(session)
    session.sql(QUERY).collect()
    assert names_of(events) == ["QueryPlanned", "QueryFinished"]
    assert isinstance(events[0], QueryPlanned)
    assert events[0].reason == "sparkfusion.enabled is false"


@pytest.mark.sample("local", "flight", "spark-local")  # Spark reports its tasks in another way
def test_story_of_a_failure(session: Session) -> None:
    events = record(session)
    with pytest.raises(UserError):
        session.sql("select k, sum(v / (v - 500)) from t group by k").collect()
    failures = [event for event in events if isinstance(event, TaskFailed)]
    assert failures
    assert not failures[0].retried
    assert "Divide by zero" in failures[0].message
    (last,) = (event for event in events if isinstance(event, QueryFailed))
    assert not last.cancelled
    assert "Divide by zero" in last.message


def test_unsubscribed_means_no_more_events(session: Session) -> None:
    events: list[Event] = []
    unsubscribe = session.subscribe(events.append)
    unsubscribe()
    unsubscribe()
    session.sql(QUERY).collect()
    assert events == []


@pytest.mark.parametrize("kind", [QueryPlanned, StageStarted, TaskStarted, TaskFinished, StageFinished, QueryFinished])
@pytest.mark.filterwarnings("ignore")
def test_subscriber_that_raises_does_not_disturb_the_query(session: Session, kind: type[Event]) -> None:
    def refuse(event: Event) -> None:
        if isinstance(event, kind):
            raise RuntimeError("subscriber failed")

    session.subscribe(refuse)
    others = record(session)
    outcome: list[object] = []

    def ask() -> None:
        try:
            outcome.append(session.sql(QUERY).collect().num_rows)
        except BaseException as error:
            outcome.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE / 4)
    assert outcome == [7], "the query hangs" if asking.is_alive() else outcome
    assert kind.__name__ in names_of(others)


@pytest.mark.runners("local", reason="tasks tell elsewhere on other threads than their own")
@pytest.mark.parametrize("kind", [TaskRunning, TaskFinished, StageStarted])
def test_subscriber_may_close_the_query(session: Session, kind: type[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    """On a thread that the query itself waits for; with a patience without end, that would hang."""
    monkeypatch.setattr(coordinated_job, "CLOSE_SECONDS", 10 * PATIENCE)
    closed = threading.Event()
    started = threading.Event()
    running: list[RunningQuery] = []

    def close(event: Event) -> None:
        if isinstance(event, kind) and started.wait(PATIENCE):
            running[0].close()
            closed.set()

    session.subscribe(close)
    running.append(session.sql(QUERY).stream())
    started.set()
    assert closed.wait(PATIENCE)


def test_events_of_two_queries_carry_their_own_ids(session: Session) -> None:
    events = record(session)
    with session.sql("select v from t where v >= 0").stream() as outer:
        next(outer)
        session.sql(QUERY).collect()
        rest = sum(batch.num_rows for batch in outer)
    assert rest > 0
    finished = [event for event in events if isinstance(event, QueryFinished)]
    assert len({event.query for event in finished}) == 2
    assert sorted(event.rows for event in finished) == [7, TOTAL]


def _fails_once(marker: Path) -> datafusion.ScalarUDF:
    """bigint → the same bigint; whoever is first to call it gets an error."""
    path = str(marker)

    def flaky(values: pa.Array) -> pa.Array:
        import os

        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return values
        raise ConnectionError("Connection refused")

    return datafusion.udf(flaky, [pa.int64()], pa.int64(), "immutable", "flaky")


@pytest.mark.parametrize(
    "query",
    ["select k, sum(flaky(v)) as s from t group by k", "select flaky(v) as s from t"],
    ids=["in a shuffle", "streamed to the reader"],
)
def test_task_is_tried_again_after_an_error_from_outside(session: Session, tmp_path: Path, query: str) -> None:
    session.register_udf(_fails_once(tmp_path / "failed once"))
    events = record(session)
    assert sum(session.sql(query).to_pydict()["s"]) == sum(range(TOTAL))
    told_at_once = len([event for event in events if isinstance(event, TaskFailed)])
    told_at_the_end = sum(event.earlier_attempts for event in events if isinstance(event, TaskFinished))
    assert told_at_once + told_at_the_end == 1


@pytest.mark.runners("local", "flight", reason="Spark tries a task again by itself, and tells when it is done")
def test_story_of_a_task_that_is_tried_again(session: Session, tmp_path: Path) -> None:
    session.register_udf(_fails_once(tmp_path / "failed once"))
    events = record(session)
    session.sql("select k, sum(flaky(v)) as s from t group by k").collect()
    (failed,) = (event for event in events if isinstance(event, TaskFailed))
    assert failed.retried
    (begun,) = (event for event in events if isinstance(event, TaskRunning) and event.key == failed.key)
    assert failed.worker == begun.worker
    assert failed.started_at == pytest.approx(begun.at, abs=0.5)
    assert [event.key.attempt for event in events if isinstance(event, TaskFinished) and event.key.attempt] == [1]
