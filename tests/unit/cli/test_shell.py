"""The shell without a terminal: what is typed goes in, what it prints comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sparkfusion.cli.options import SessionOptions
from sparkfusion.cli.shell import pager
from sparkfusion.cli.shell.shell import Shell
from sparkfusion.cli.shell.shell_state import ShellState
from sparkfusion.cli.tables import parse_table
from sparkfusion.errors import ExternalError

Talk = Callable[..., str]


class Typed:
    """A reader that gives what a person would type, then the end."""

    def __init__(self, *texts: str | type[BaseException]) -> None:
        self._texts = iter(texts)

    def read(self) -> str:
        text = next(self._texts, EOFError)
        if isinstance(text, str):
            return text
        raise text


@pytest.fixture
def shell(items: str) -> Iterator[Shell]:
    with Shell(SessionOptions("local", (parse_table(items),)), ShellState(paging=False)) as shell:
        yield shell


@pytest.fixture
def talk(shell: Shell, capsys: pytest.CaptureFixture[str]) -> Talk:
    """Type each text; all that is printed, errors too."""

    def run(*texts: str | type[BaseException]) -> str:
        shell.run(Typed(*texts))
        printed = capsys.readouterr()
        return printed.out + printed.err

    return run


def test_statements_errors_and_ctrl_c_leave_the_shell_as_it_is(talk: Talk) -> None:
    shown = talk(
        "select count(*) as n from items;",
        "select nothing from items;",
        KeyboardInterrupt,  # drops what was typed
        "select 1 as one; select 2 as two;",
        r"\q",
        "select 'not reached';",
    )
    assert "1000" in shown
    assert "error: " in shown
    assert "one" in shown
    assert "two" in shown
    assert "not reached" not in shown


def test_a_damaged_file_leaves_the_shell_as_it_is(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1" + b"x" * 100 + b"PAR1")  # DataFusion panics
    shown = talk(f"select * from '{tmp_path}/bad.parquet';", "select 41 + 1 as answer;")
    assert "error: cannot read" in shown
    assert "bad.parquet' cannot be read" in shown
    assert "42" in shown


def test_what_cannot_work_is_refused_at_once(talk: Talk, shell: Shell) -> None:
    assert r"\once result.parquet writes the next result to a file" in talk(r"\format parquet")
    assert shell.state.form == "table"
    assert "the directory 'nope' does not exist" in talk(r"\once nope/r.csv")
    assert shell.state.once is None
    said = talk(r"\connect foo")
    assert "'foo' is neither local, spark, a master of Spark" in said
    assert "sparkfusion.connect" not in said


def test_a_cancelled_query_is_no_error(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sparkfusion.cli.run_statement.write", interrupt)
    shown = talk("select 1;")
    assert "cancelled" in shown
    assert "error" not in shown


def test_the_tables_and_the_columns_of_one(talk: Talk) -> None:
    shown = talk(r"\d")
    assert "items" in shown
    assert "information_schema" not in shown
    shown = talk(r"\d items;")
    assert "part" in shown
    assert "Int64" in shown


def test_paths_are_tables(talk: Talk, items: str) -> None:
    directory = items.partition("=")[2]
    assert "250" in talk(
        f"select count(*) from '{directory}/0.parquet' a join '{directory}/*.parquet' b on a.id / 2 = b.id;"
    )
    assert "does not exist" in talk("select * from 'nothing.parquet';")


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("csv", "id,part\n7,7\n"),
        ("ndjson", '{"id":7,"part":7}\n'),
        ("vertical", "----- row 1 -----\nid   | 7\npart | 7\n1 row\n"),
        ("markdown", "| id | part |\n|---:|---:|\n| 7 | 7 |\n"),
    ],
)
def test_formats(talk: Talk, form: str, expected: str) -> None:
    assert talk(rf"\format {form}", "select * from items where id = 7;").endswith(f"format: {form}\n{expected}")


def test_the_next_result_goes_to_a_file(talk: Talk, tmp_path: Path) -> None:
    path = tmp_path / "result.parquet"
    shown = talk(rf"\once {path}", "select a.id, b.id from items a join items b on a.id = b.id;", "select 5 as later;")
    assert f"wrote {path}" in shown
    assert "later" in shown
    assert pq.read_table(path).schema.names == ["id", "id_1"]
    assert pq.read_table(path).num_rows == 1000


def test_how_many_rows_are_shown(talk: Talk) -> None:
    shown = talk(r"\rows 2", "select id from items order by id;")
    assert r"1,000 rows, 998 not shown (\rows)" in shown


def test_timing_and_explain_are_about_the_last_query(talk: Talk) -> None:
    assert "there is no query to explain yet" in talk(r"\explain")
    shown = talk(r"\timing on", "select part from items;", "set sparkfusion.bytes_per_partition = 1;", r"\explain")
    assert " s; 1,000 rows; " in shown
    assert "stage 1" in shown.lower()
    assert "rows" in talk(r"\explain analyze")


def test_statements_of_a_file(talk: Talk, tmp_path: Path) -> None:
    path = tmp_path / "script.sql"
    path.write_text("select 3 as three;\n\nselect wrong;\nselect 4 as four")
    shown = talk(rf"\i {path}")
    assert "three" in shown
    assert f"in the statement that begins at line 3 of {path}" in shown
    assert "four" not in shown
    assert "cannot read 'missing.sql'" in talk(r"\i missing.sql")


def test_settings_and_where_they_come_from(talk: Talk) -> None:
    shown = talk("set sparkfusion.slots = 3;", r"\settings")
    assert "sparkfusion.slots" in shown
    assert "SET" in shown
    assert "batch_size" in talk(r"\settings batch_s")


def test_connecting_elsewhere_keeps_the_tables_of_the_command_line(shell: Shell, talk: Talk) -> None:
    before = shell.session
    shown = talk("create table mine as values (1);", r"\connect local", r"\d")
    assert shell.session is not before
    assert "items" in shown
    assert "mine" not in shown
    kept = shell.session
    assert "error: " in talk(r"\connect flight://127.0.0.1:9")
    assert shell.session is kept
    assert "1000" in talk("select count(*) from items;")


def test_the_shell_says_where_tasks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sparkfusion.toml"
    path.write_text("[runner]\non = 'local'\n")
    monkeypatch.setenv("SPARKFUSION_CONFIG", str(path))
    with Shell(SessionOptions(None), ShellState()) as shell:
        assert (shell.target, shell.title) == ("local", "sparkfusion")
        shell.options = SessionOptions("flight://host:1?token=secret")
        assert shell.title == "sparkfusion flight://host:1"
    path.write_text("[runner]\non = 'flight://127.0.0.1:9'\n")
    with pytest.raises(ExternalError, match=r"127\.0\.0\.1:9 does not answer"):
        Shell(SessionOptions(None), ShellState())


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (r"\frmat csv", r"did you mean \format?"),
        (r"\format cvs", "did you mean 'csv'?"),
        (r"\rows many", r"\rows takes a number"),
        (r"\timing maybe", "on or off"),
        (r"\explain loudly", "takes nothing or analyze"),
        (r"\once", "needs a file"),
        (r"\i", "needs a file"),
    ],
)
def test_wrong_commands(talk: Talk, command: str, message: str) -> None:
    assert message in talk(command)


def test_every_command_is_in_the_help(talk: Talk) -> None:
    from sparkfusion.cli.shell.backslash import COMMANDS

    shown = talk("help")
    assert all(name in shown for command in COMMANDS for name in command.names)
    assert talk(r"\?") == shown


def test_commands_work_in_sparks_dialect(talk: Talk) -> None:
    shown = talk("set sparkfusion.dialect = spark;", r"\d items", "select 7 div 2 as half;", r"\explain")
    assert "Int64" in shown
    assert "half" in shown
    assert "error" not in shown


def test_long_output_goes_through_the_pager(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PAGER", "sed s/^/paged:/")
    monkeypatch.setenv("LINES", "5")
    pager.show("a\n" * 4, paging=True)
    assert capfd.readouterr().out == "a\n" * 4
    pager.show("a\n" * 6, paging=True)
    assert capfd.readouterr().out == "paged:a\n" * 6
    pager.show("a\n" * 6, paging=False)
    assert capfd.readouterr().out == "a\n" * 6
    monkeypatch.setenv("PAGER", "true")  # reads nothing
    pager.show("a\n" * 100_000, paging=True)
