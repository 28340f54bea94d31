from __future__ import annotations

from typing import Any

from sparkfusion.observe.query_model import build_model
from tests.unit.observe.lines import BEGIN, chain_of, ended, failed, finished, metrics, planned, running, started

PLAN = chain_of(2)


def attempts_of(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    attempts: list[dict[str, Any]] = build_model([planned(PLAN), *lines])["attempts"]
    return attempts


def test_a_query_that_was_only_planned_has_no_run() -> None:
    line = {name: value for name, value in planned(PLAN).items() if name != "started"}
    model = build_model([line])
    assert model["query"]["status"] == "planned"
    assert [stage["id"] for stage in model["stages"]] == [1, 2]
    assert "attempts" not in model


def test_the_clock_of_a_query_begins_before_it_is_planned() -> None:
    query = build_model([planned(PLAN), ended(9.0)])["query"]
    assert (query["started_at"], query["ended_at"], query["seconds"]) == (BEGIN, BEGIN + 9, 9.0)
    assert (query["status"], query["rows"], query["planning_seconds"]) == ("finished", 7, 0.5)


def test_an_attempt_ends_when_its_machine_says_not_when_it_is_heard() -> None:
    (attempt,) = attempts_of(started(1, 0, 1.0), finished(1, 0, 1.5, seconds=2.0))
    assert (attempt["ordered_at"], attempt["started_at"], attempt["ended_at"]) == (BEGIN + 1, BEGIN + 1.5, BEGIN + 3.5)
    assert (attempt["outcome"], attempt["worker"], attempt["rows"]) == ("finished", "w1", 10)


def test_a_retried_attempt_and_the_next_one_are_two() -> None:
    first, second = attempts_of(
        started(1, 0, 1.0), failed(1, 0, 2.0), started(1, 0, 2.0, 1), finished(1, 0, 2.1, attempt=1)
    )
    assert (first["outcome"], first["message"], first["worker"]) == ("retried", "Connection refused", "w2")
    assert (second["attempt"], second["outcome"]) == (1, "finished")


def test_an_attempt_on_a_silent_worker_ends_when_the_next_is_ordered() -> None:
    first, second = attempts_of(
        started(1, 0, 1.0), running(1, 0, 1.2), started(1, 0, 4.0, 1), finished(1, 0, 4.1, attempt=1), ended()
    )
    assert (first["outcome"], first["ended_at"], first["worker"]) == ("given up", BEGIN + 4, "w1")
    assert second["outcome"] == "finished"


def test_attempts_that_nobody_waits_for_stop_with_the_query() -> None:
    waiting, run = attempts_of(started(1, 0, 1.0), started(1, 1, 1.0), running(1, 1, 1.5), ended(9.0))
    assert (run["outcome"], run["ended_at"]) == ("stopped", BEGIN + 9)
    assert "started_at" not in waiting


def test_a_restart_keeps_the_attempts_before_it_apart() -> None:
    restarted = {"event": "query_restarted", "at": BEGIN + 3, "query": "q1", "reason": "lack", "plan": chain_of(3)}
    lines = [started(1, 0, 1.0), running(1, 0, 1.0), restarted, started(1, 0, 3.5), finished(1, 0, 3.5), ended()]
    model = build_model([planned(PLAN), *lines])
    assert [(each["run"], each["outcome"]) for each in model["attempts"]] == [(1, "stopped"), (2, "finished")]
    assert len(model["stages"]) == 3
    assert [each["kind"] for each in model["decided"]] == ["restarted"]


def test_the_end_brings_the_plan_as_it_ran_and_its_figures() -> None:
    model = build_model([planned(PLAN), ended(plan=chain_of(1), metrics=[metrics(1)], feeds=[])])
    assert len(model["stages"]) == 1
    assert model["metrics"][0]["operators"][1]["spilled_bytes"] == 4096
    assert "feeds" not in model


def test_a_failed_query_has_its_error_and_unknown_lines_change_nothing() -> None:
    lines = [{"event": "from_the_future", "at": BEGIN}, {"event": "query_failed", "at": BEGIN + 1, "message": "no"}]
    model = build_model([planned(PLAN), *({**line, "query": "q1", "cancelled": False} for line in lines)])
    assert (model["query"]["status"], model["query"]["error"]) == ("failed", "no")
