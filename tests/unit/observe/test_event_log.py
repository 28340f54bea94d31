from __future__ import annotations

import json
import logging
import stat
from pathlib import Path
from typing import Any

import pytest

import sparkfusion
from sparkfusion import UserError
from sparkfusion.ids import TaskKey
from sparkfusion.observe.event_log import EventLog
from sparkfusion.observe.events import FeedProgress, QueryFinished, QueryPlanned, RowsRejected, TaskFinished
from sparkfusion.observe.log_lines import LineMaker
from sparkfusion.observe.past_queries import history, read_model
from sparkfusion.observe.query_model import build_model
from tests.unit.observe.lines import large_run

PLANNED = QueryPlanned("q1", 0, 0, "it reads no data", 0.25, "select '\u2028' -- ünï", at=1000.0)
FINISHED = QueryFinished("q1", 1, 0.5, at=1001.0)


def log_to(directory: Path) -> EventLog:
    return EventLog(lambda: str(directory), lambda graph: "")


def write_log(directory: Path, lines: list[dict[str, Any]], end: str = "\n") -> Path:
    file = directory / "20260101T000000Z-q1.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + end)
    return file


def test_a_query_has_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    log = log_to(tmp_path / "made" / "for it")
    for event in (PLANNED, FINISHED, FINISHED):  # what comes after the end is of nobody
        log(event)
    (file,) = (tmp_path / "made" / "for it").iterdir()
    assert file.name == "19700101T001640Z-q1.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    first, last = map(json.loads, file.read_text().split("\n")[:-1])
    assert (first["event"], first["version"], first["text"]) == ("query_planned", 1, PLANNED.text)
    assert (last["event"], last["rows"]) == ("query_finished", 1)


def test_events_of_queries_that_were_not_planned_here_are_left_out(tmp_path: Path) -> None:
    log_to(tmp_path)(FINISHED)
    assert list(tmp_path.iterdir()) == []


def test_a_line_of_an_event_is_flat_and_finite() -> None:
    event = TaskFinished("q1", TaskKey("q1", 2, 3, 1), 5, 6, 0.5, worker="w", started_at=7.0, at=8.0)
    told = {"rows": 5, "bytes": 6, "seconds": 0.5, "earlier_attempts": 0, "worker": "w", "started_at": 7.0}
    key = {"stage": 2, "task": 3, "attempt": 1}
    assert LineMaker().line_of(event) == {"event": "task_finished", "at": 8.0, "query": "q1"} | key | told
    assert LineMaker().line_of(FeedProgress("q1", "t", 0, 1, 1, 1, 0, True))["event"] == "feed_progress"
    assert LineMaker().line_of(RowsRejected("q1", "t", 0, ()))["first"] == []


def test_a_directory_that_cannot_be_written_is_told_once_and_the_query_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "taken").write_text("a file")
    settings = {"sparkfusion.event_log": str(tmp_path / "taken")}
    with sparkfusion.connect(config=settings) as session, caplog.at_level(logging.WARNING, "sparkfusion"):
        assert session.sql("select 1 as one").to_pylist() == [{"one": 1}]
    assert [record.message for record in caplog.records if "has no event log" in record.message]
    assert len(caplog.records) == 1


def test_a_session_that_is_closed_ends_the_logs_of_its_queries(tmp_path: Path) -> None:
    session = sparkfusion.connect(config={"sparkfusion.event_log": str(tmp_path)})
    running = session.sql("select * from generate_series(1, 1000000)").stream()
    next(running)
    session.close()
    running.close()
    (row,) = history(tmp_path).to_pylist()
    assert (row["status"], row["error"]) == ("cancelled", "the session was closed before the query ended")


def test_a_log_without_an_end_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    lines = large_run(3)[:-1]
    file = write_log(tmp_path, lines, end='\n{"event": "query_fin')
    model = read_model(file)
    assert model["query"]["status"] == "running"
    assert model["attempts"] == build_model(lines)["attempts"]
    (row,) = history(tmp_path).to_pylist()
    assert (row["status"], row["seconds"], row["stages"], row["failed_attempts"]) == ("running", None, 3, 1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"event": "query_planned", "version": 2}\n', "has version 2, and this is 1"),
        ('{"event": "query_planned", "version": 1}\n', "is damaged"),
        ("not json\n", "line 1 .* is not JSON"),
        ("[]\n", "is not an event"),
        ("", "is not an event log"),
        ('{"event": "task_started"}\n', "is not an event log"),
    ],
)
def test_what_is_no_log_is_refused_by_its_name(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "some.jsonl"
    file.write_text(text)
    with pytest.raises(UserError, match=reason) as caught:
        read_model(file)
    assert "some.jsonl" in caught.value.message
    (row,) = history(tmp_path).to_pylist()
    assert (row["status"], row["error"], row["file"]) == ("unreadable", caught.value.message, str(file))


def test_history_of_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        history(tmp_path / "nowhere")
