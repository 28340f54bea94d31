"""One task for a whole plan that lacks memory does not end the query: it runs again, split. Both can be stopped."""

from __future__ import annotations

import logging
import signal
import threading
from pathlib import Path

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import QueryCancelledError, ResourceError, Session
from sparkfusion.config import settings
from sparkfusion.observe.events import QueryFinished, QueryPlanned, QueryRestarted
from sparkfusion.observe.progress import Progress
from tests.behaviour.parts import DISTRIBUTED, TOTAL, assert_usable, record, rows_of, single_node
from tests.behaviour.probes import Gate, holding_udf
from tests.conftest import Connect
from tests.runners import WHOLE, WIDE, Runner

pytestmark = [
    pytest.mark.any_width,
    pytest.mark.runners("local", "flight", "spark-local", reason="frames play no part in this"),
]
QUERY = "select k, sum(lacking(v)) as s from t group by k"


@pytest.fixture
def lacking(session: Session, tmp_path: Path) -> Session:
    """Its function `lacking` fails like an operator without memory, until the query has been restarted."""
    restarted = tmp_path / "restarted"
    session.subscribe(lambda event: restarted.touch() if isinstance(event, QueryRestarted) else None)
    session.register_udf(lacking_udf(str(restarted)))
    return session


def lacking_udf(restarted: str) -> datafusion.ScalarUDF:
    def lack(values: pa.Array) -> pa.Array:
        if not Path(restarted).exists():
            raise RuntimeError("Resources exhausted: Failed to allocate additional 8.0 MB")
        return values

    return datafusion.udf(lack, [pa.int64()], pa.int64(), "volatile", "lacking")


def test_the_query_runs_again_split(lacking: Session, runner: Runner, caplog: pytest.LogCaptureFixture) -> None:
    events, progress = record(lacking), Progress()
    lacking.subscribe(progress)
    if runner.name not in WIDE:  # its tasks could spill, and did not find enough nevertheless
        with pytest.raises(ResourceError, match="Resources exhausted"):
            lacking.sql(QUERY).collect()
        assert not any(isinstance(event, QueryRestarted) for event in events)
        return
    with caplog.at_level(logging.WARNING, "sparkfusion"):
        found = lacking.sql(QUERY).collect()
    assert sum(found.to_pydict()["s"]) == sum(range(TOTAL))
    (restarted,) = (event for event in events if isinstance(event, QueryRestarted))
    assert restarted.stages == 2
    assert restarted.tasks > 2
    assert {event.query for event in events} == {restarted.query}
    assert [type(event) for event in (events[0], events[-1])] == [QueryPlanned, QueryFinished]
    assert [message for message in caplog.messages if "runs again in tasks of one partition" in message]
    assert progress.state.status == "finished"
    assert progress.state.stages_done == 2
    assert_usable(lacking)


@pytest.mark.runners("local", reason="what explain shows does not depend on where tasks run")
def test_explain_shows_the_run_that_gave_the_rows(lacking: Session, runner: Runner) -> None:
    if runner.name not in WHOLE:
        lacking.config["sparkfusion.task_cores"] = 0
    shown = lacking.sql(QUERY).explain_text(analyze=True)
    title, note, *_ = shown.splitlines()
    assert title.startswith("distributed: 2 stages")
    assert note.startswith("tasks of one partition: wider tasks lacked memory")
    assert "Stage 2 ── 4 tasks" in shown


@pytest.mark.parametrize("limit", ["limit 7 offset 3", "order by v limit 7 offset 3"])
def test_limits_hold_in_the_second_run(lacking: Session, runner: Runner, limit: str) -> None:
    if runner.name not in WHOLE:
        lacking.config["sparkfusion.tasks"] = 1
        lacking.config["sparkfusion.task_cores"] = 0
    found = lacking.sql(f"select lacking(v) as v from t {limit}").to_pydict()["v"]
    assert len(set(found)) == 7
    if "order by" in limit:
        assert found == list(range(3, 10))


@pytest.mark.parametrize("how", ["cancel", "close", "interrupt"])
def test_the_second_run_is_stopped(lacking: Session, runner: Runner, tmp_path: Path, how: str) -> None:
    if runner.name not in WHOLE:
        lacking.config["sparkfusion.tasks"] = 1
        lacking.config["sparkfusion.task_cores"] = 0
    with Gate(tmp_path) as gate:
        lacking.register_udf(holding_udf(gate, "hang"))
        running = lacking.sql("select k, sum(hang(lacking(v))) as s from t group by k").stream()

        def stop() -> None:
            gate.wait_for_arrivals()
            if how == "interrupt":
                signal.raise_signal(signal.SIGINT)
            else:
                getattr(running, how)()

        stopper = threading.Thread(target=stop)
        stopper.start()
        with pytest.raises(KeyboardInterrupt if how == "interrupt" else QueryCancelledError):
            list(running)
        stopper.join()
    assert_usable(lacking)


@pytest.mark.runners("local", reason="the memory of other processes cannot be changed from here")
@pytest.mark.parametrize("tail", ["group by v, s", "order by s, v"])
def test_real_memory_runs_out(connect: Connect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: str) -> None:
    """With little memory, plain DataFusion hangs in such a query now and then: docs/upstream-defects.md, DF 24883."""
    for file in range(4):
        rows = range(file * 20_000, (file + 1) * 20_000)
        pq.write_table(
            pa.table({"v": rows, "s": [f"{row * 7919 % 1_000_003:050}" for row in rows]}), tmp_path / f"{file}.parquet"
        )
    monkeypatch.setattr(settings, "fair_share", lambda slots: 4 << 20)
    session = connect(
        DISTRIBUTED
        | {
            "sparkfusion.slots": 2,
            "sparkfusion.tasks": 1,
            "sparkfusion.task_cores": 2,
            "datafusion.execution.target_partitions": 2,
            "datafusion.execution.batch_size": 256,
            "datafusion.execution.sort_spill_reservation_bytes": 64 * 1024,
            "datafusion.execution.sort_in_place_threshold_bytes": 64 * 1024,
        }
    )
    session.register_parquet("wide", tmp_path)
    events = record(session)
    query = session.sql(f"select v, s from wide {tail}")
    assert rows_of(query.collect()) == rows_of(single_node(query))
    assert any(isinstance(event, QueryRestarted) for event in events)
