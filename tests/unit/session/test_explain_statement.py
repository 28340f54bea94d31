"""The forms of EXPLAIN: which rows they give. Where tasks run makes no difference."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import sparkfusion
from sparkfusion import Session, UserError
from sparkfusion.observe.events import Event, QueryPlanned
from tests.behaviour.parts import DISTRIBUTED, PARTS, record, write_parts

QUERY = "select k, count(*) as n from t group by k"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with sparkfusion.connect(config={**DISTRIBUTED, "sparkfusion.task_cores": 1}) as session:
        session.register_parquet("t", write_parts(tmp_path))
        yield session


def rows_of(session: Session, statement: str, dialect: str | None = None) -> list[tuple[str, str]]:
    found = session.sql(statement, dialect=dialect).to_pydict()
    assert list(found) == ["plan_type", "plan"]
    return list(zip(found["plan_type"], found["plan"], strict=True))


@pytest.mark.parametrize(
    "words", ["explain", "EXPLAIN FORMAT text", "explain format indent", "explain (format 'text')"]
)
def test_explain_shows_the_logical_and_the_distributed_plan(session: Session, words: str) -> None:
    (logical, first), (distributed, second) = rows_of(session, f"{words} {QUERY}")
    assert (logical, distributed) == ("logical_plan", "distributed_plan")
    assert first.startswith("Projection:")
    assert second.startswith("distributed: 2 stages")
    assert "ran as" not in second


@pytest.mark.parametrize("words", ["explain verbose", "explain (verbose)", "explain (verbose, format text)"])
def test_verbose_adds_the_plans_of_a_single_node(session: Session, words: str) -> None:
    rows = rows_of(session, f"{words} {QUERY}")
    kinds = [kind for kind, _ in rows]
    assert kinds[0] == "initial_logical_plan"
    assert "physical_plan" in kinds
    assert rows[-1][1].startswith("distributed: 2 stages")


def distributed_queries(events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, QueryPlanned) and event.reason is None]


def test_analyze_runs_the_query_once(session: Session) -> None:
    events = record(session)
    ((kind, plan),) = rows_of(session, f"explain analyze {QUERY}")
    assert kind == "distributed_plan"
    assert "ran as 4 tasks" in plan
    assert len(distributed_queries(events)) == 1
    kinds = [kind for kind, _ in rows_of(session, f"explain analyze verbose {QUERY}")]
    assert kinds == ["logical_plan", "physical_plan", "distributed_plan"]
    assert len(distributed_queries(events)) == 2


def test_analyze_of_a_query_on_a_single_node_has_datafusions_figures(session: Session) -> None:
    session.config["sparkfusion.enabled"] = False
    rows = dict(rows_of(session, f"explain analyze {QUERY}"))
    assert list(rows) == ["Plan with Metrics", "distributed_plan"]
    assert rows["distributed_plan"].startswith("not distributed: sparkfusion.enabled is false")


@pytest.mark.parametrize("dialect", ["datafusion", "spark"])
@pytest.mark.parametrize("words", ["explain format json", "explain (format json)", 'explain format "JSON"'])
def test_json_is_one_row_with_a_version(session: Session, words: str, dialect: str) -> None:
    ((kind, plan),) = rows_of(session, f"{words} {QUERY}", dialect)
    model = json.loads(plan)
    assert (kind, model["version"], model["distributed"]) == ("distributed_plan", 1, True)
    assert model["query"] == {"id": "", "text": QUERY, "status": "planned"}


def test_analyze_as_json_tells_when_and_where_tasks_ran(session: Session) -> None:
    ((_, plan),) = rows_of(session, f"explain analyze format json {QUERY}")
    model = json.loads(plan)
    assert model["query"]["status"] == "finished"
    assert model["query"]["rows"] == 7
    finished = [each for each in model["attempts"] if each["outcome"] == "finished"]
    begin, end = model["query"]["started_at"], model["query"]["ended_at"]
    assert len(finished) == len(model["attempts"]) > PARTS
    assert all(begin <= each["ordered_at"] <= each["started_at"] <= each["ended_at"] <= end for each in finished)


@pytest.mark.parametrize(("format", "start"), [("dot", "digraph"), ("html", "<!doctype html>")])
def test_drawings_are_one_row(session: Session, format: str, start: str) -> None:
    ((kind, plan),) = rows_of(session, f"explain format {format} {QUERY}")
    assert kind == "distributed_plan"
    assert plan.startswith(start)


@pytest.mark.parametrize("words", ["explain format tree", "explain (format tree)", "explain format graphviz"])
def test_formats_of_datafusion_show_its_plan(session: Session, words: str) -> None:
    rows = rows_of(session, f"{words} {QUERY}")
    assert rows[0] in rows_of_datafusion(session, f"{words} {QUERY}")
    assert rows[-1][0] == "distributed_plan"
    assert rows[-1][1].startswith("distributed: 2 stages")


def rows_of_datafusion(session: Session, statement: str) -> list[tuple[str, str]]:
    found = session.context.sql(statement).to_pydict()
    return list(zip(found["plan_type"], found["plan"], strict=True))


def test_datafusions_settings_choose_its_format_and_leave_out_the_logical_plan(session: Session) -> None:
    session.config["datafusion.explain.physical_plan_only"] = True
    assert [kind for kind, _ in rows_of(session, f"explain {QUERY}")] == ["distributed_plan"]
    session.config["datafusion.explain.format"] = "tree"
    assert [kind for kind, _ in rows_of(session, f"explain {QUERY}")] == ["physical_plan", "distributed_plan"]


@pytest.mark.parametrize(
    "words", ["explain format xml", "explain (analyze, format xml)", "explain analyze format yaml"]
)
def test_an_unknown_format_is_refused_by_its_name(session: Session, words: str) -> None:
    with pytest.raises(UserError, match=r"EXPLAIN has no format '(xml|yaml)'") as caught:
        session.sql(f"{words} {QUERY}")
    assert "html" in str(caught.value.hint)


def test_analyze_with_a_format_of_datafusion_is_refused(session: Session) -> None:
    with pytest.raises(UserError, match="EXPLAIN ANALYZE with FORMAT tree is not supported"):
        session.sql(f"explain analyze format tree {QUERY}")
