"""Tables that no `--table NAME=` names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion.cli.table_sources import paths_in
from tests.unit.cli.conftest import Invoke


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with data/orders/*.parquet, data/People.csv and data/notes.txt."""
    (tmp_path / "data" / "orders").mkdir(parents=True)
    for number in range(2):
        pq.write_table(pa.table({"id": [number]}), tmp_path / "data" / "orders" / f"{number}.parquet")
    (tmp_path / "data" / "People.csv").write_text("name\nAnn\nBob\n")
    (tmp_path / "data" / "notes.txt").write_text("ann;1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPARKFUSION_CONFIG")
    return tmp_path


def count(invoke: Invoke, table: str, *arguments: str) -> int:
    result = invoke("sql", "-c", f"select count(*) as n from {table}", "--format", "jsonl", *arguments)
    assert result.exit_code == 0, result.output
    return int(json.loads(result.stdout)["n"])


def test_each_folder_and_file_of_a_directory_is_a_table(invoke: Invoke, directory: Path) -> None:
    assert count(invoke, "orders", "-t", "data") == 2
    assert count(invoke, "people", "-t", "data") == 2
    assert count(invoke, "people", "-t", "data/People.csv") == 2
    assert "notes.txt" in invoke("sql", "-c", "select 1", "-t", "data/").stderr
    (directory / "data" / "people.parquet").touch()
    twice = invoke("sql", "-c", "select 1", "-t", "data")
    assert twice.exit_code != 0
    assert "would both be table 'people'" in twice.stderr


def test_a_folder_of_folders_is_a_table_only_if_they_are_partitions(invoke: Invoke, directory: Path) -> None:
    rows = pa.table({"id": [1]})
    for folder in ("by_year/year=2026", "others/orders"):
        (directory / "data" / folder).mkdir(parents=True)
        pq.write_table(rows, directory / "data" / folder / "0.parquet")
    assert count(invoke, "by_year", "-t", "data") == 1
    told = invoke("sql", "-c", "select 1", "-t", "data").stderr
    assert "not tables, judging by their names: notes.txt, others in data" in told


def test_tables_of_the_file_and_flags_over_them(invoke: Invoke, directory: Path) -> None:
    (directory / "sparkfusion.toml").write_text(
        '[tables]\norders = "data/orders/"\n[tables.notes]\npath = "data/notes.txt"\nformat = "csv"\n'
        'options = { has_header = false, delimiter = ";" }\n'
    )
    (directory / "deeper").mkdir()
    assert count(invoke, "orders") == 2
    assert count(invoke, "orders", "-t", "ORDERS=data/orders/0.parquet") == 1
    result = invoke("sql", "-c", "select column_2 from notes", "--format", "csv")
    assert result.stdout == "column_2\n1\n", result.output
    for command in ("explain", "verify"):
        assert "orders" not in invoke(command, "-c", "select count(*) from orders").stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tables]\nt = "missing/"', "table 't': .* does not exist"),
        ('[tables.t]\npath = "data/notes.txt"\nformat = "csv"\noptions = {delimter = ";"}', "did you mean 'delimiter'"),
        ("[tables.t]\npath = 'data/notes.txt'\nformat = 'cvs'", "there is no format 'cvs'"),
    ],
)
def test_wrong_tables_of_the_file(invoke: Invoke, directory: Path, text: str, message: str) -> None:
    (directory / "sparkfusion.toml").write_text(text)
    result = invoke("sql", "-c", "select 1")
    assert result.exit_code == 1
    assert re.search(message, result.stderr)


def test_a_path_in_the_sql_is_a_table_for_every_command(invoke: Invoke, directory: Path) -> None:
    assert count(invoke, "'data/orders/*.parquet'") == 2
    assert count(invoke, "'data/orders/'") == 2
    query = "select a.id, count(*) from 'data/orders/' a group by a.id"
    assert invoke("explain", "-c", query).exit_code == 0
    assert invoke("verify", "-c", query).exit_code == 0
    missing = invoke("sql", "-c", "select * from 'data/nothing.csv'")
    assert (missing.exit_code, "cannot read 'data/nothing.csv' as a table" in missing.stderr) == (1, True)


@pytest.mark.parametrize(
    ("sql", "paths"),
    [
        ("select 'a' from 'b.csv' x, t y, 'c.csv' join 'd.csv' on x.e = 'e'", ["b.csv", "c.csv", "d.csv"]),
        ("copy (select * from 'it''s.csv') to 'out.csv'", ["it's.csv"]),
        ("select trim(both 'x' from 'y'), substring('abc' from 'b'), extract(year from '2020-01-01'::date)", []),
        ("select 'a' is distinct from 'b', 'from ''c.csv'''", []),
        ("select trim(both 'x' from (select max(a) from 'q.csv')) from (select 1) as z", ["q.csv"]),
        ("-- from 'a.csv'\nselect 1", []),
        ("select * from t where a in ('b', 'c') order by 'd'", []),
    ],
)
def test_where_a_path_may_be(sql: str, paths: list[str]) -> None:
    assert paths_in(sql) == paths
