"""The magics without a notebook: options, sessions, variables, errors. tests/examples/test_notebook.py has a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sparkfusion
from sparkfusion import DataFrame, Session, UserError
from sparkfusion.notebook import magic
from sparkfusion.notebook.magic import SqlMagic, short_errors
from sparkfusion.notebook.magic_line import MagicLine, named_values, parse_magic


class _Shell:
    """As much of IPython's shell as the magics use."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        self.magics_manager = self
        self.magics: dict[str, dict[str, Callable[..., Any]]] = {"line": {}, "cell": {}}

    def push(self, variables: dict[str, Any]) -> None:
        self.user_ns |= variables

    def register_magic_function(self, function: Callable[..., Any], kind: str, name: str) -> None:
        assert kind == "line_cell"
        for each in self.magics.values():
            each[name] = function


@pytest.fixture
def shell(session: Session) -> _Shell:
    shell = _Shell()
    shell.user_ns["session"] = session
    return shell


@pytest.fixture
def session() -> Iterator[Session]:
    with sparkfusion.connect() as session:
        session.sql("create table t as values (1), (2), (3)")
        yield session


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(magic, "_publish", shown.append)
    return shown


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("", MagicLine()),
        ("--to df", MagicLine(to="df")),
        ("--to=df --dialect spark select 1", MagicLine(to="df", dialect="spark", sql="select 1")),
        ("select 1 --to df", MagicLine(sql="select 1 --to df")),
        ("-- to df", MagicLine(sql="-- to df")),
        ("--session a --session b --progress off", MagicLine(session="b", progress="off")),
    ],
)
def test_options_come_before_sql(line: str, meant: MagicLine) -> None:
    assert parse_magic(line) == meant


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--into df select 1", "there is no option --into"),
        ("--to", "--to has no value"),
        ("--to --session a", "--to has no value"),
        ("--to a.b", "--to takes the name of a variable, not 'a.b'"),
        ("--dialect mysql", "--dialect is one of datafusion, spark, not 'mysql'"),
    ],
)
def test_wrong_options_are_named(line: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        parse_magic(line)
    assert "%%sparkfusion [--session NAME]" in (caught.value.hint or "")


def test_variables_are_found_outside_of_quotes() -> None:
    variables = {"a": 1, "b": 2}
    assert named_values("select $a, '$b' -- $b", "datafusion", variables) == {"a": 1}
    assert named_values("select :a, x::b, ':b'", "spark", variables) == {"a": 1}


def test_a_line_returns_its_dataframe(shell: _Shell) -> None:
    made = SqlMagic(shell).run_line("select sum(column1) as n from t")
    assert isinstance(made, DataFrame)
    assert made.to_pylist() == [{"n": 6}]


def test_a_cell_shows_the_rows_of_its_last_statement(shell: _Shell, published: list[dict[str, str]]) -> None:
    cell = "insert into t values (4); -- a comment; and more\nselect count(*) as n from t;"
    SqlMagic(shell).run_cell("", cell)
    (shown,) = published
    assert "| 4 |" in shown["text/plain"]
    assert ">4</td>" in shown["text/html"]


def test_a_statement_without_rows_shows_nothing(shell: _Shell, published: list[dict[str, str]]) -> None:
    SqlMagic(shell).run_cell("", "create table u as select 1 as one")
    assert SqlMagic(shell).run_line("drop table u") is None
    assert published == []


def test_a_cell_gives_its_dataframe_to_a_variable(shell: _Shell, published: list[dict[str, str]]) -> None:
    SqlMagic(shell).run_cell(
        "--to df", "select column1 as n from t where column1 > $least"
    )  # $least is no variable yet
    shell.user_ns["least"] = 2
    SqlMagic(shell).run_cell("--to df", "select column1 as n from t where column1 > $least")
    assert shell.user_ns["df"].to_pylist() == [{"n": 3}]
    SqlMagic(shell).run_cell("--to again", "select n + 1 as n from $df")
    assert shell.user_ns["again"].to_pylist() == [{"n": 4}]
    SqlMagic(shell).run_cell("--to half --dialect spark", "select 7 div :least as half")
    assert shell.user_ns["half"].to_pylist() == [{"half": 3}]
    assert published == []


def test_without_a_session_one_is_opened(session: Session) -> None:
    shell = _Shell()
    made = SqlMagic(shell).run_line("select 1 as one")
    with shell.user_ns["session"] as opened:
        assert isinstance(opened, Session)
        assert made is not None
        assert made.to_pylist() == [{"one": 1}]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--session other select 1", "cannot use 'other' as a session: there is no such variable"),
        ("--session number select 1", "cannot use 'number' as a session: it is a int"),
    ],
)
def test_a_variable_that_is_no_session_is_named(shell: _Shell, line: str, said: str) -> None:
    shell.user_ns["number"] = 7
    with pytest.raises(UserError, match=said):
        SqlMagic(shell).run_line(line)


@pytest.mark.parametrize("cell", ["", "-- only a comment", ";"])
def test_an_empty_cell_is_an_error(shell: _Shell, cell: str) -> None:
    with pytest.raises(UserError, match="it has no statement"):
        SqlMagic(shell).run_cell("", cell)


def test_sql_on_the_line_of_a_cell_is_an_error(shell: _Shell) -> None:
    with pytest.raises(UserError, match="'select 1' is not an option"):
        SqlMagic(shell).run_cell("select 1", "select 2")


def test_the_magic_is_registered_once_and_removed(shell: _Shell) -> None:
    magic.load(shell)
    registered = shell.magics["line"]["sparkfusion"]
    magic.load(shell)
    assert shell.magics["line"]["sparkfusion"] is registered
    assert shell.magics["cell"]["sparkfusion"] is registered
    assert vars(registered)["_ipython_magic_no_var_expand"]
    assert registered("select 5 as n").to_pylist() == [{"n": 5}]
    magic.unload(shell)
    assert shell.magics == {"line": {}, "cell": {}}


def test_errors_are_short_in_ipython() -> None:
    with pytest.raises(UserError) as caught, short_errors():
        raise UserError("no such table", hint="known tables: t")
    (shown,) = caught.value._render_traceback_()  # type: ignore[attr-defined]
    assert shown.endswith("UserError\x1b[0m: no such table\n  hint: known tables: t")
    with pytest.raises(KeyboardInterrupt) as stopped, short_errors():
        raise KeyboardInterrupt
    assert stopped.value._render_traceback_()[0].endswith(": stopped")  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError) as other, short_errors():
        raise ZeroDivisionError
    assert not hasattr(other.value, "_render_traceback_")
