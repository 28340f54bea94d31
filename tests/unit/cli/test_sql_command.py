from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.cli.conftest import Invoke

FORCED = ("--set", "sparkfusion.bytes_per_partition=1", "--set", "sparkfusion.task_cores=1", "--partitions", "3")
GROUPED = "select part, count(*) as n from items group by part order by part nulls first"


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "table"])
def test_every_format_gives_the_answer(invoke: Invoke, items: str, form: str) -> None:
    result = invoke(
        "sql", "-c", "select id, part from items where id in (0, 7) order by id", "-t", items, "--format", form
    )
    assert result.exit_code == 0, result.output
    match form:
        case "csv":
            assert result.stdout == "id,part\n0,\n7,7\n"
        case "json":
            assert json.loads(result.stdout) == [{"id": 0, "part": None}, {"id": 7, "part": 7}]
        case "jsonl":
            assert result.stdout == '{"id":0,"part":null}\n{"id":7,"part":7}\n'
        case _:
            assert "|  0 | NULL |" in result.stdout
            assert "2 rows" in result.stdout


def test_statements_in_sparks_dialect(invoke: Invoke, items: str) -> None:
    query = "select `part` div 2 as half, count(*) as n from ITEMS group by 1 order by half limit 2"
    result = invoke("sql", "-c", query, "-t", items, "--dialect", "spark", "--format", "csv", *FORCED)
    assert result.stdout == "half,n\n,10\n0,190\n", result.output
    shown = invoke("explain", "-c", query, "-t", items, "--dialect", "spark", *FORCED)
    assert "stage 1" in shown.stdout.lower(), shown.output
    refused = invoke("sql", "-c", "select bround(id) from items", "-t", items, "--dialect", "spark")
    assert refused.exit_code != 0
    assert "the function bround is not available in the spark dialect" in refused.stderr


def test_what_writes_runs_once_and_timing_tells_of_its_stages(invoke: Invoke, items: str, tmp_path: Path) -> None:
    script = (
        "create table m as values (1), (2); update m set column1 = column1 * 2; insert into m values (7); "
        f"copy (select part, count(*) as n from items group by part) to '{tmp_path}/out' stored as parquet; "
        "select sum(column1) as s from m"
    )
    result = invoke("sql", "-c", script, "-t", items, "--format", "csv", "--timing", *FORCED)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == ["count", "2", "count", "1", "count", "11", "s", "13"]
    assert re.search(r"1 row; 2 stages, \d+ tasks", result.stderr)
    refused = invoke("sql", "-c", "delete from items", "-t", items)
    assert refused.exit_code == 1
    assert "cannot run DELETE FROM items" in refused.stderr


def test_the_query_is_distributed_and_timing_tells_so(invoke: Invoke, items: str) -> None:
    result = invoke("sql", "-c", GROUPED, "-t", items, "--format", "csv", "--timing", *FORCED)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:3] == ["part,n", ",10", "0,90"]
    assert len(lines) == 12
    assert "11 rows; " in result.stderr
    assert " stages, " in result.stderr


def test_timing_tells_why_a_query_was_not_distributed(invoke: Invoke) -> None:
    result = invoke("sql", "-c", "select 1", "--timing")
    assert "; 1 row; single node" in result.stderr


def test_timing_counts_the_whole_statement(
    invoke: Invoke, items: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query of a COPY ends when its rows are there; then they are written to the files."""
    clock = iter([100.0, 162.0])
    monkeypatch.setattr("sparkfusion.cli.run_statement.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    copy = f"copy (select * from items) to '{tmp_path}/out.parquet'"
    result = invoke("sql", "-c", copy, "-t", items, "--timing", *FORCED)
    assert result.stderr.startswith("62.000 s; 1 row; 1 stage"), result.stderr


@pytest.mark.parametrize("statement", ["set sparkfusion.slots = 2", "create view v as select 1"])
def test_timing_of_a_statement_without_rows_is_its_time_alone(invoke: Invoke, statement: str) -> None:
    result = invoke("sql", "-c", statement, "--timing")
    assert result.exit_code == 0, result.output
    assert re.fullmatch(r"\d+\.\d{3} s\n", result.stderr)


def test_statements_run_in_order(invoke: Invoke, items: str) -> None:
    view = "create view few as select id from items where id < 2; -- a comment; here\n"
    script = f"{view} select count(*) as n from few; select 'a;b' as s"
    result = invoke("sql", "-c", script, "-t", items, "--format", "csv")
    assert result.exit_code == 0, result.output
    assert result.stdout == "n\n2\ns\na;b\n"


def test_statements_come_from_a_file_or_standard_input(invoke: Invoke, tmp_path: Path) -> None:
    script = tmp_path / "q.sql"
    script.write_text("select 1 as one;")
    assert invoke("sql", "--file", str(script), "--format", "csv").stdout == "one\n1\n"
    assert invoke("sql", "--file", "-", "--format", "csv", stdin="select 2 as two").stdout == "two\n2\n"


def test_output_goes_to_a_file(invoke: Invoke, items: str, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    result = invoke("sql", "-c", "select id from items", "-t", items, "--format", "jsonl", "-o", str(target), *FORCED)
    assert (result.exit_code, result.stdout) == (0, "")
    assert sorted(json.loads(line)["id"] for line in target.read_text().splitlines()) == list(range(1000))


def test_a_failing_query_leaves_no_file(invoke: Invoke, items: str, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    result = invoke("sql", "-c", "select 1 / (id - id) from items", "-t", items, "-o", str(target), *FORCED)
    assert result.exit_code == 1
    assert not target.exists()


def test_a_table_is_cut_at_max_rows(invoke: Invoke, items: str) -> None:
    result = invoke("sql", "-c", "select id from items", "-t", items, "--max-rows", "5")
    assert "1,000 rows, 995 not shown (--max-rows)" in result.stdout


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("a.csv", "id,name\n1,x\n2,y\n", ""),
        ("a.txt", "id,name\n1,x\n2,y\n", "csv:"),
        ("a.json", '{"id":1,"name":"x"}\n{"id":2,"name":"y"}\n', ""),
        ("a.ndjson", '{"id":1,"name":"x"}\n{"id":2,"name":"y"}\n', ""),
        ("a.log", '{"id":1,"name":"x"}\n{"id":2,"name":"y"}\n', "json:"),
    ],
)
def test_text_files_are_tables(invoke: Invoke, tmp_path: Path, name: str, content: str, form: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    result = invoke("sql", "-c", "select id, name from t order by id", "-t", f"t={form}{path}", "--format", "csv")
    assert result.stdout == "id,name\n1,x\n2,y\n", result.output


def test_a_mistake_in_the_query_is_one_readable_block(invoke: Invoke, items: str) -> None:
    result = invoke("sql", "-c", "select nope from items", "-t", items)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("sparkfusion: ")
    assert "nope" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["sql", "explain"])
def test_an_error_names_the_line_of_its_statement(invoke: Invoke, command: str) -> None:
    result = invoke(command, "-c", "select 1;\n\nselect nope;")
    assert result.exit_code == 1
    assert result.stderr.endswith("\n  in the statement that begins at line 3\n")


def test_an_unknown_setting_names_the_nearest(invoke: Invoke) -> None:
    result = invoke("sql", "-c", "select 1", "--set", "sparkfusion.slot=2")
    assert result.exit_code == 2
    assert "sparkfusion.slots" in result.stderr


def test_a_setting_without_its_prefix_is_told_its_full_name(invoke: Invoke) -> None:
    result = invoke("sql", "-c", "select 1", "-s", "slots=4")
    assert result.exit_code == 2
    assert "there is no setting 'slots'; its full name is sparkfusion.slots" in result.stderr


@pytest.mark.parametrize("command", ["sql", "explain"])
def test_a_table_that_is_not_found_names_the_option_and_what_was_given(
    invoke: Invoke, items: str, command: str
) -> None:
    result = invoke(command, "-c", "select * from tt", "-t", items)
    assert result.exit_code == 1
    assert "'datafusion.public.tt' not found" in result.stderr
    assert re.search(r"^  hint: .*items.*; --table tt=PATH adds it$", result.stderr, re.MULTILINE), result.output


def test_a_directory_that_does_not_exist_is_named_before_anything_runs(invoke: Invoke, tmp_path: Path) -> None:
    target = tmp_path / "nope" / "x.csv"
    result = invoke("sql", "-c", "select nope", "-o", str(target))
    assert result.exit_code == 2
    assert f"cannot write {str(target)!r}: the directory {str(target.parent)!r} does not exist" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-c", "select 1", "--file", "q.sql"),
        ("-c", " -- nothing"),
        ("-c", "select 1", "--format", "xml"),
        ("-c", "select 1", "--set", "novalue"),
        ("-c", "select 1", "--table", "t=missing.parquet"),
        ("-c", "select 1", "--table", "missing/"),
        ("-c", "select 1", "--table", "t=pyproject.toml"),
        ("-c", "select 1", "--table", "t=csv:pyproject.toml", "--table", "t=csv:README.md"),
        ("-c", "select 1", "--set", "sparkfusion.slots=many"),
        ("-c", "select 1", "--set", "sparkfusion.nothing=1"),
        ("-c", "select 1", "--set", "datafusion.nothing=1"),
        ("-c", "select 1", "--set", "slots=2"),
        ("-c", "select 1", "--connect", "sprak"),
        ("-c", "select 1", "--output", "missing/x.csv"),
        ("-c", "select 1", "--partitions", "0"),
        ("--file", "missing.sql"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_a_usage_error(invoke: Invoke, arguments: tuple[str, ...]) -> None:
    result = invoke("sql", *arguments)
    assert result.exit_code == 2
    assert "Error:" in result.stderr


def test_a_file_whose_name_tells_no_format_is_a_table_and_that_is_said(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("sql", "-c", "select 1 as one", "-o", str(tmp_path / "x.xyz"))
    assert result.exit_code == 0
    assert "implies no format, so it will be a table for people; --format chooses one" in result.stderr
    assert invoke("sql", "-c", "select 1", "-o", str(tmp_path / "x.txt")).stderr == ""


def test_a_path_in_double_quotes_or_without_a_format_is_told_what_helps(invoke: Invoke, tmp_path: Path) -> None:
    people, notes = tmp_path / "people.csv", tmp_path / "notes.txt"
    people.write_text("a\n1\n")
    notes.write_text("a\n1\n")
    result = invoke("sql", "-c", f'select * from "{people}"')
    assert f"hint: write a path in single quotes: '{people}'" in result.stderr
    result = invoke("sql", "-c", f"select * from '{notes}'")
    assert "its name implies no format" in result.stderr
    made = f"create external table notes stored as csv location '{notes}'"
    assert f"hint: name it: {made}, if it is CSV; or on the command line --table notes=csv:{notes}" in result.stderr
    assert invoke("sql", "-c", f"{made}; select * from notes").exit_code == 0


def test_debug_shows_the_traceback(invoke: Invoke) -> None:
    result = invoke("--debug", "sql", "-c", "select nope")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


@pytest.mark.parametrize("wrapped", [False, True])
def test_ctrl_c_is_130(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, wrapped: bool) -> None:
    def interrupted(*_arguments: object, **_options: object) -> None:
        if wrapped:
            raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
        raise KeyboardInterrupt

    monkeypatch.setattr("sparkfusion.cli.run_statement.write", interrupted)
    result = invoke("sql", "-c", "select 1")
    assert (result.exit_code, result.stderr) == (130, "sparkfusion: cancelled\n")


def test_a_query_that_is_not_distributed_says_why_on_stderr(
    invoke: Invoke, items: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own, which the command line has not
    query = "select sum(id) filter (where part > 1) over (partition by part) as s from items"
    result = invoke("sql", "-c", f"{query}; {query}", "-t", items, "--format", "csv", *FORCED)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("runs on a single node because it cannot be distributed: FILTER") == 1
    assert len(result.stdout.splitlines()) == 2 * 1001
