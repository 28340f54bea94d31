from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sparkfusion.verify import Outcome, VerifyResult
from tests.unit.cli.conftest import Invoke

GROUPED = "select part, count(*) as n from items group by part"


def test_a_right_answer_passes(invoke: Invoke, items: str) -> None:
    result = invoke("verify", "-c", GROUPED, "-t", items, "--require-distributed")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("passed")
    assert result.stdout.splitlines()[-1] == "1 verified: 1 passed"


def test_several_partition_counts_are_verified(invoke: Invoke, items: str) -> None:
    result = invoke("verify", "-c", GROUPED, "-t", items, "--partitions", "2", "--partitions", "5", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert [query["name"] for query in report["queries"]] == ["query 1 @2", "query 1 @5"]
    assert report["really_distributed"] == 2


def test_a_script_may_prepare_what_it_verifies(invoke: Invoke, items: str, tmp_path: Path) -> None:
    script = tmp_path / "q.sql"
    script.write_text(f"create view v as {GROUPED};\n\nselect n, count(*) from v group by n;\n(select 1 as one);")
    result = invoke("verify", "-f", str(script), "-t", items, "--json")
    assert result.exit_code == 0, result.output
    found = {query["name"]: query["outcome"] for query in json.loads(result.stdout)["queries"]}
    assert found == {"q:3": "passed", "q:4": "not distributed"}


def test_statements_that_write_are_not_run(invoke: Invoke, items: str, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    result = invoke("verify", "-c", f"copy ({GROUPED}) to '{target}' stored as csv", "-t", items)
    assert result.exit_code == 4, result.output
    assert result.stdout.startswith("not comparable")
    assert not target.exists()


def test_a_directory_of_scripts(invoke: Invoke, items: str, tmp_path: Path) -> None:
    queries = tmp_path / "queries"
    queries.mkdir()
    (queries / "b.sql").write_text(GROUPED)
    (queries / "a.sql").write_text("select sum(id) from items;")
    (queries / "notes.txt").write_text("no query")
    result = invoke("verify", "-f", str(queries), "-t", items, "--json")
    assert [query["name"] for query in json.loads(result.stdout)["queries"]] == ["a", "b"]


def test_what_is_not_distributed_beside_a_proof_fails_only_on_demand(invoke: Invoke, items: str) -> None:
    both = ("verify", "-c", f"{GROUPED}; select 1", "-t", items)
    relaxed = invoke(*both)
    assert relaxed.exit_code == 0, relaxed.output
    assert "not distributed, so their check proves nothing: 1 of 2 queries" in relaxed.stderr
    assert invoke(*both, "--require-distributed").exit_code == 3


def test_a_run_without_any_distributed_query_proves_nothing(invoke: Invoke) -> None:
    result = invoke("verify", "-c", "select 1")
    assert result.exit_code == 3, result.output
    assert result.stdout.startswith("not distributed")
    assert "no query was distributed" in result.stderr


@pytest.mark.parametrize("more", [(), ("--json",), ("--require-distributed",)])
def test_an_answer_that_cannot_be_compared_is_no_success(invoke: Invoke, items: str, more: tuple[str, ...]) -> None:
    result = invoke("verify", "-c", f"{GROUPED}; select random() as r from items where id >= 0", "-t", items, *more)
    assert result.exit_code == 4, result.output
    assert "not comparable" in result.stdout
    assert "could not be compared: 1 of 2 queries" in result.stderr


def test_a_script_without_queries_is_no_success(invoke: Invoke) -> None:
    result = invoke("verify", "-c", "set sparkfusion.slots = 2")
    assert result.exit_code == 4, result.output
    assert "there was no query" in result.stderr


def test_a_wrong_answer_counts_more_than_one_that_was_not_compared(invoke: Invoke, items: str) -> None:
    result = invoke("verify", "-c", "select nope; select random() as r from items where id >= 0", "-t", items)
    assert result.exit_code == 1, result.output


def test_a_query_that_fails_everywhere_is_an_error(invoke: Invoke) -> None:
    result = invoke("verify", "-c", "select nope")
    assert result.exit_code == 1
    assert result.stdout.startswith("both failed")


def test_a_table_that_is_not_found_names_the_option_and_what_was_given(invoke: Invoke, items: str) -> None:
    result = invoke("verify", "-c", "select * from tt", "-t", items)
    assert result.exit_code == 1
    assert re.search(r"^  hint: .*items.*; --table tt=PATH adds it$", result.stdout, re.MULTILINE), result.output


def test_the_progress_line_is_told_each_leg(invoke: Invoke, items: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("sparkfusion.cli.progress_lines.ProgressLines.step", lambda _line, name: told.append(name))
    result = invoke("verify", "-c", GROUPED, "-t", items)
    assert result.exit_code == 0, result.output
    legs = ["single-node leg", "planning", "round-trip leg", "distributed leg", "comparing the answers"]
    assert told == ["planning", *legs]


def test_a_wrong_answer_is_an_error_with_its_story(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_session: object, sql: str, *, name: str, reproducer_dir: str) -> VerifyResult:
        made = Path(reproducer_dir) / "made"
        return VerifyResult(
            sql, Outcome.WRONG_ANSWER, (), "one row too many", "distributed", name=name, reproducer=made
        )

    monkeypatch.setattr("sparkfusion.verify.verify_query", wrong)
    result = invoke("verify", "-c", "select 1", "--reproducers", "failures")
    assert result.exit_code == 1
    assert result.stdout.startswith("wrong answer")
    assert "one row too many" in result.stdout
    assert "reproducer: failures/made" in result.stdout
    assert "1 verified: 1 wrong answer" in result.stdout


@pytest.mark.parametrize("arguments", [(), ("-c", "select 1", "--partitions", "0")])
def test_usage_errors(invoke: Invoke, arguments: tuple[Any, ...]) -> None:
    assert invoke("verify", *arguments).exit_code == 2


def test_a_directory_without_scripts_is_a_usage_error(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke("verify", "-f", str(tmp_path)).exit_code == 2
