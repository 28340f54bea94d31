"""Lines of logging say what they are about, in attributes that a formatter can show."""

from __future__ import annotations

import json
import logging
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

import sparkfusion
from sparkfusion.ids import TaskKey
from sparkfusion.log_fields import FIELDS, about
from sparkfusion.observe import events
from sparkfusion.observe.event_log import EventLog
from sparkfusion.observe.event_logging import fields_of, log_event
from sparkfusion.observe.events import (
    Event,
    QueryFailed,
    QueryFinished,
    QueryPlanned,
    StageStarted,
    TaskFailed,
    TaskFinished,
)

KEY = TaskKey("q", stage=2, task=5, attempt=1)


def test_a_line_about_a_task_has_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "sparkfusion")
    log_event(TaskFinished("q", KEY, rows=1234, bytes=10, seconds=0.5, worker="w:1"))
    (record,) = caplog.records
    assert record.name == "sparkfusion.events"
    assert record.levelno == logging.DEBUG
    assert record.getMessage() == "query q, stage 2, task 5, attempt 1 finished: 1,234 rows in 0.500 s"
    shown = {name: getattr(record, name) for name in (*FIELDS, "event", "rows", "bytes", "seconds")}
    assert shown == {
        **about(KEY, worker="w:1"),
        "event": "task_finished",
        "rows": 1234,
        "bytes": 10,
        "seconds": 0.5,
    }


def test_ends_and_failures_are_told_at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sparkfusion")
    log_event(QueryPlanned("q", 2, 6, None, 0.1, text="select 'secret'"))
    log_event(StageStarted("q", 1, 3))
    log_event(TaskFailed("q", KEY, "disk full", retried=True, worker="w:1"))
    log_event(QueryFailed("q", "disk full", cancelled=False))
    log_event(QueryFinished("q", rows=2, seconds=1.0))
    assert caplog.messages == [
        "query q, stage 2, task 5, attempt 1 failed, and is retried: disk full",
        "query q failed: disk full",
        "query q finished: 2 rows in 1.000 s",
    ]
    assert [record.__dict__.get("error") for record in caplog.records] == ["disk full", "disk full", None]


def test_nothing_is_made_of_an_event_whose_level_is_off(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "sparkfusion")
    described: list[Event] = []

    def note(event: Event) -> dict[str, Any]:
        described.append(event)
        return {}

    monkeypatch.setattr("sparkfusion.observe.event_logging.fields_of", note)
    log_event(StageStarted("q", 1, 3))
    assert described == []
    log_event(QueryFinished("q", rows=2, seconds=1.0))
    assert len(described) == 1


def test_the_sql_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "sparkfusion")
    log_event(QueryPlanned("q", 2, 6, None, 0.1, text="select 'secret'"))
    assert "secret" not in str(caplog.records[0].__dict__)


def test_every_line_has_every_field() -> None:
    """So that a format may name them: a line without one would be lost, with an error on stderr."""
    lines: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Keeping()
    handler.setFormatter(logging.Formatter("%(query)s %(stage)s %(task)s %(attempt)s %(worker)s %(message)s"))
    logger = logging.getLogger("sparkfusion")
    logger.addHandler(handler)
    try:
        logger.warning("no field")
        logger.warning("of a query", extra=about("q"))
        logging.getLogger("sparkfusion.events").warning("below")
    finally:
        logger.removeHandler(handler)
    assert lines == ["None None None None None no field", "q None None None None of a query", "None " * 5 + "below"]


def test_warnings_about_a_query_name_it(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = EventLog(lambda: str(tmp_path / "file"), lambda _: "")
    log(QueryPlanned("q", 0, 0, "small", 0.1))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.__dict__["query"] == "q"


def test_no_kind_of_event_has_a_name_that_logging_uses(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "sparkfusion")
    kinds = [each for each in vars(events).values() if isinstance(each, type) and issubclass(each, Event)]
    made = [_any_of(kind) for kind in kinds if kind is not Event]
    for event in made:
        log_event(event)
    assert len(caplog.records) == len(made) > 15
    assert all(json.dumps(fields_of(event)) for event in made)


def _any_of(kind: type[Event]) -> Event:
    values: dict[str, Any] = {"key": KEY, "first": (), "worker": "w"}
    needed = [each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]
    return kind(**{name: values.get(name, "q" if name == "query" else 1) for name in needed})


def test_a_query_is_logged_from_its_plan_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "sparkfusion.events")
    with sparkfusion.connect() as session:
        session.sql("select 1").collect()
    told = [record.__dict__["event"] for record in caplog.records]
    assert told == ["query_planned", "query_finished"]
    assert len({record.__dict__["query"] for record in caplog.records}) == 1
