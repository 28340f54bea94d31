"""The event log tells of a query what its events told, on every runner; past queries are read from it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import sparkfusion
from sparkfusion import Session, UserError
from sparkfusion.observe.past_queries import read_model
from tests.behaviour.parts import PARTS, TOTAL, names_of, record

pytestmark = pytest.mark.sample("local", "flight")

QUERY = "select k, count(*) as n from t group by k"


@pytest.fixture
def logs(session: Session, tmp_path: Path) -> Path:
    session.sql(f"set sparkfusion.event_log = '{tmp_path}/logs'")
    return tmp_path / "logs"


def test_a_log_holds_every_event_and_the_whole_model(session: Session, logs: Path) -> None:
    events = record(session)
    session.sql(QUERY).collect()
    (file,) = logs.iterdir()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["event"].replace("_", "") for line in lines] == [name.lower() for name in names_of(events)]
    model = read_model(file)
    assert (model["query"]["status"], model["query"]["rows"], model["query"]["text"]) == ("finished", 7, QUERY)
    assert [stage["id"] for stage in model["stages"]] == [1, 2]
    by_stage = {each["stage"]: each for each in model["metrics"]}
    assert by_stage[1]["operators"][-1]["rows"] == TOTAL
    finished = [each for each in model["attempts"] if each["outcome"] == "finished"]
    assert len([each for each in finished if each["stage"] == 1]) == PARTS
    assert all(each["started_at"] <= each["ended_at"] <= model["query"]["ended_at"] for each in finished)


def test_history_lists_what_was_run(session: Session, logs: Path, tmp_path: Path) -> None:
    session.sql(QUERY).collect()
    session.sql(f"copy ({QUERY}) to '{tmp_path}/out' stored as parquet")
    with pytest.raises(UserError):
        session.sql("select k, sum(v / (v - 500)) from t group by k").collect()
    session.sql("reset sparkfusion.event_log")
    session.sql(QUERY).collect()
    found = sparkfusion.history(logs)
    assert found.schema.field("started_at").type == pa.timestamp("us", tz="UTC")
    rows = {row["text"][:6]: row for row in found.to_pylist()}
    assert sorted(rows) == ["copy (", "select"]
    assert sorted(found["status"].to_pylist()) == ["failed", "finished", "finished"]
    (failed,) = (row for row in found.to_pylist() if row["status"] == "failed")
    assert "Divide by zero" in failed["error"]
    assert failed["failed_attempts"] >= 1
    assert rows["copy ("]["stages"] >= 2


def test_metrics_are_a_table_of_operators(session: Session) -> None:
    with session.sql(QUERY).stream() as running:
        assert sum(batch.num_rows for batch in running) == 7
    found = running.metrics().to_pylist()
    assert {row["stage"] for row in found} >= {1, 2}
    (scan,) = (row for row in found if row["operator"].startswith("DataSourceExec") and row["stage"] == 1)
    assert (scan["rows"], scan["tasks"]) == (TOTAL, PARTS)
    assert session.sql("select 1").stream().metrics().num_rows == 0
