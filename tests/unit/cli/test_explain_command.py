from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Invoke

FORCED = ("--set", "sparkfusion.bytes_per_partition=1", "--set", "sparkfusion.task_cores=1", "--partitions", "3")
GROUPED = "select part, count(*) as n from items group by part"


def test_text_shows_the_stages(invoke: Invoke, items: str) -> None:
    result = invoke("explain", "-c", GROUPED, "-t", items, *FORCED)
    assert result.exit_code == 0, result.output
    assert "stage" in result.stdout.lower()
    assert "shuffle" in result.stdout.lower()


def test_json_is_json(invoke: Invoke, items: str) -> None:
    result = invoke("explain", "-c", GROUPED, "-t", items, "--format", "json", *FORCED)
    assert result.exit_code == 0, result.output
    assert "stages" in json.dumps(json.loads(result.stdout))


def test_dot_is_a_graph(invoke: Invoke, items: str) -> None:
    result = invoke("explain", "-c", GROUPED, "-t", items, "--format", "dot", *FORCED)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("digraph")
    assert result.stdout.rstrip().endswith("}")


def test_analyze_runs_the_query(invoke: Invoke, items: str) -> None:
    plain = invoke("explain", "-c", GROUPED, "-t", items, *FORCED)
    analyzed = invoke("explain", "--analyze", "-c", GROUPED, "-t", items, *FORCED)
    assert analyzed.exit_code == 0, analyzed.output
    assert "rows" in analyzed.stdout
    assert analyzed.stdout != plain.stdout


def test_the_reason_of_a_single_node_query_is_shown(invoke: Invoke) -> None:
    recursive = "with recursive n as (select 1 as i union all select i + 1 from n where i < 3) select * from n"
    result = invoke("explain", "-c", recursive)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("not distributed: ")


def test_what_writes_is_shown_and_not_run(invoke: Invoke, items: str, tmp_path: Path) -> None:
    copy = f"copy ({GROUPED}) to '{tmp_path}/out' stored as parquet"
    script = f"create table m as values (1), (2); delete from m; {copy}; select 1 / (count(*) - 2) from m"
    result = invoke("explain", "-c", script, "-t", items, *FORCED)
    assert result.exit_code == 0, result.output
    assert "not distributed: DELETE FROM m changes a table" in result.stdout
    assert "distributed: 2 stages" in result.stdout
    assert not (tmp_path / "out").exists()
    analyzed = invoke("explain", "--analyze", "-c", copy, "-t", items, *FORCED)
    assert "ran as" in analyzed.stdout
    assert (tmp_path / "out").is_dir()


def test_html_is_a_page_in_a_file(invoke: Invoke, items: str, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    result = invoke("explain", "--analyze", "-c", GROUPED, "-t", items, "--html", str(page), *FORCED)
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    assert page.read_text().startswith("<!doctype html>")
    assert '"status": "finished"' in page.read_text()


def test_a_past_query_is_drawn_from_its_log(invoke: Invoke, items: str, tmp_path: Path) -> None:
    logged = invoke("sql", "-c", GROUPED, "-t", items, "--set", f"sparkfusion.event_log={tmp_path}", *FORCED)
    assert logged.exit_code == 0, logged.output
    (log,) = tmp_path.glob("*.jsonl")
    page = tmp_path / "past.html"
    result = invoke("explain", "--from-log", str(log), "--html", str(page))
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    shown = json.loads(invoke("explain", "--from-log", str(log), "--format", "json").stdout)
    assert shown["query"]["text"] == GROUPED
    assert shown["query"]["id"] in page.read_text()
    assert {each["outcome"] for each in shown["attempts"]} == {"finished"}


def test_a_log_that_is_not_there_is_named(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("explain", "--from-log", str(tmp_path / "no.jsonl"), "--format", "json")
    assert result.exit_code == 2
    assert "no.jsonl" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-c", "select 1", "--format", "svg"),
        ("-c", "select 1; select 2", "--html", "out.html"),
        ("-c", "select 1", "--html", "out.html", "--format", "json"),
        ("-c", "select 1", "--from-log", "x.jsonl"),
        ("--from-log", "x.jsonl"),
    ],
)
def test_usage_errors(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    assert invoke("explain", *arguments).exit_code == 2
