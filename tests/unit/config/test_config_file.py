"""`sparkfusion.toml`: which one is found, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkfusion.config.config_file import TableEntry, find_config_file, read_config_file
from sparkfusion.errors import UserError


def make(directory: Path, text: str = "") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "sparkfusion.toml"
    path.write_text(text)
    return path


def test_the_nearest_file_up_to_the_root_of_the_project_is_found(tmp_path: Path) -> None:
    outside, inside = make(tmp_path), make(tmp_path / "project")
    deep = tmp_path / "project" / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()
    home = tmp_path / "home"
    assert find_config_file(deep, home, {}) == inside
    inside.unlink()
    assert find_config_file(deep, home, {}) is None
    (tmp_path / "project" / ".git").rmdir()
    assert find_config_file(deep, home, {}) is None  # outside a project and the home directory, only the directory
    assert find_config_file(tmp_path, home, {}) == outside
    assert find_config_file(deep, tmp_path, {}) == outside


def test_the_variable_names_a_file_or_none(tmp_path: Path) -> None:
    here, named = make(tmp_path), make(tmp_path / "elsewhere")
    assert find_config_file(tmp_path, tmp_path, {"SPARKFUSION_CONFIG": str(named)}) == named
    assert find_config_file(tmp_path, tmp_path, {"SPARKFUSION_CONFIG": ""}) is None
    assert find_config_file(tmp_path, tmp_path, {}) == here
    with pytest.raises(UserError, match=r"SPARKFUSION_CONFIG names 'no\.toml', which is not a file"):
        find_config_file(tmp_path, tmp_path, {"SPARKFUSION_CONFIG": "no.toml"})


def test_a_file_of_another_user_is_refused_unless_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path)
    monkeypatch.setattr("sparkfusion.config.config_file._ROOT", -1)
    monkeypatch.setattr("os.geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(UserError, match="belongs to another user"):
        find_config_file(tmp_path, tmp_path, {})
    assert find_config_file(tmp_path, tmp_path, {"SPARKFUSION_CONFIG": str(path)}) == path


def test_names_with_dots_and_paths_beside_the_file(tmp_path: Path) -> None:
    path = make(
        tmp_path,
        """
        [settings]
        sparkfusion.slots = 3
        "sparkfusion.enabled" = false
        [settings.datafusion.execution]
        batch_size = 99
        [tables]
        orders = "data/orders/"
        far = "s3://bucket/far/"
        [tables.people]
        path = "/data/people.txt"
        format = "csv"
        options = { has_header = false }
        [runner]
        on = "spark"
        """,
    )
    found = read_config_file(path)
    assert found.settings == {
        "sparkfusion.slots": 3,
        "sparkfusion.enabled": False,
        "datafusion.execution.batch_size": 99,
    }
    assert found.tables == (
        TableEntry("orders", f"{tmp_path}/data/orders/"),
        TableEntry("far", "s3://bucket/far/"),
        TableEntry("people", "/data/people.txt", "csv", {"has_header": False}),
    )
    assert found.on == "spark"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[setings]", "unknown section 'setings'\n  hint: did you mean 'settings'"),
        ("settings = 1", "'settings' is a section"),
        ("[runner]\non = 1", "'on' must be a string"),
        ("[runner]\nin = 'spark'", r"unknown key of \[runner\] 'in'"),
        ("[settings]\nsparkfusion.slots = [1]", r"sparkfusion\.slots must be a string, a number"),
        ("[tables]\nt = 1", "table 't' has no path"),
        ("[tables.t]\npath = 'a'\nformt = 'csv'", "unknown key of table 't' 'formt'\n  hint: did you mean 'format'"),
        ("[tables.t]\npath = 'a'\noptions = 1", "a table as options"),
        ("[settings", "cannot read .*sparkfusion.toml"),
    ],
)
def test_what_is_wrong_is_an_error_with_the_path(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        read_config_file(make(tmp_path, text))
    assert str(tmp_path) in str(raised.value)
