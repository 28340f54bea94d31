"""Where values of settings come from: each source wins over those before it, and the session says which it was."""

from __future__ import annotations

from pathlib import Path

import pytest

import sparkfusion
from sparkfusion import ExternalError, Session, UserError

SLOTS = "sparkfusion.slots"
BATCH_SIZE = "datafusion.execution.batch_size"


def source_of(session: Session, name: str) -> str:
    """As `settings()`, SHOW and the table of settings say it."""
    rows = {row["name"]: row for row in session.settings().to_pylist()}
    assert session.sql(f"show {name} verbose").to_pylist() == [rows[name]]
    listed = session.sql(f"select * from information_schema.df_settings where name = '{name}'").to_pylist()
    assert listed == [rows[name]]
    return str(rows[name]["source"])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "sparkfusion.toml"
    path.write_text("[settings]\nsparkfusion.slots = 2\ndatafusion.execution.batch_size = 20\n")
    monkeypatch.delenv("SPARKFUSION_CONFIG")
    monkeypatch.chdir(tmp_path)
    return path


def test_each_source_wins_over_those_before_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(expected: tuple[str, str], config: dict[str, object] | None = None) -> None:
        with sparkfusion.connect(config=config) as session:
            assert (session.config[SLOTS], source_of(session, SLOTS)) == expected

    check(("2", str(file)))
    monkeypatch.setenv("SPARKFUSION_SLOTS", "3")
    check(("3", "SPARKFUSION_SLOTS"))
    check(("5", "connect"), {SLOTS: 5})
    with sparkfusion.connect() as session:
        assert (session.config[BATCH_SIZE], source_of(session, BATCH_SIZE)) == ("20", str(file))
        assert source_of(session, "sparkfusion.enabled") == "default"


@pytest.mark.parametrize(("name", "begun_with"), [(SLOTS, "2"), (BATCH_SIZE, "20")])
def test_set_wins_and_reset_brings_back_what_the_session_began_with(file: Path, name: str, begun_with: str) -> None:
    with sparkfusion.connect() as session:
        session.sql(f"set {name} = 7")
        assert (session.config[name], source_of(session, name)) == ("7", "SET")
        session.sql(f"reset {name}")
        assert (session.config[name], source_of(session, name)) == (begun_with, str(file))


def test_after_reset_without_any_source_it_is_the_default() -> None:
    with sparkfusion.connect() as session:
        for name in (SLOTS, BATCH_SIZE):
            default = session.config[name]
            session.config[name] = 7
            del session.config[name]
            assert (session.config[name], source_of(session, name)) == (default, "default")
        session.sql("set time zone = 'Europe/Vienna'")
        assert source_of(session, "datafusion.execution.time_zone") == "SET"


def test_a_wrong_value_says_where_it_was_given(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("[settings]\nsparkfusion.frame_compression = 'lz'\n")
    with pytest.raises(UserError, match=r"not 'lz' \(from .*sparkfusion.toml\)\n  hint: did you mean 'lz4'"):
        sparkfusion.connect()
    file.write_text("[settings]\ndatafusion.execution.batchsize = 1\n")
    with pytest.raises(UserError, match=r"sparkfusion\.toml(.|\n)*did you mean 'datafusion.execution.batch_size'"):
        sparkfusion.connect()
    file.write_text("")
    monkeypatch.setenv("SPARKFUSION_SLOTS", "many")
    with pytest.raises(UserError, match=r"takes a whole number, not 'many' \(from SPARKFUSION_SLOTS\)"):
        sparkfusion.connect()


def test_the_file_says_where_tasks_run_unless_the_program_does(file: Path) -> None:
    file.write_text("[runner]\non = 'flight://127.0.0.1:9'\n[tables]\nt = 'missing.parquet'\n")
    with pytest.raises(ExternalError, match=r"flight://127\.0\.0\.1:9 does not answer"):
        sparkfusion.connect()
    with sparkfusion.connect("local") as session:
        assert session.sql("select 1 as one").to_pylist() == [{"one": 1}]
        assert session.sql("show tables").to_pydict()["table_name"].count("t") == 0  # of the command line only
