from __future__ import annotations

from pathlib import Path

import pytest

from sparkfusion.cli.tables import Table, check_unique, hint_of, parse_table
from sparkfusion.errors import UserError


@pytest.mark.parametrize(
    ("file", "form", "extension", "compression"),
    [
        ("a.parquet", "parquet", ".parquet", None),
        ("a.csv", "csv", ".csv", None),
        ("a.csv.gz", "csv", ".csv.gz", "gzip"),
        ("a.b.ndjson", "json", ".ndjson", None),
        ("a.jsonl.zst", "json", ".jsonl.zst", "zstd"),
        ("a.json", "json", ".json", None),
        ("a.arrow", "arrow", ".arrow", None),
        ("a.avro", "avro", ".avro", None),
        ("a.pq", "parquet", ".pq", None),
        ("A.CSV.GZ", "csv", ".CSV.GZ", "gzip"),
    ],
)
def test_the_extension_tells_the_format(
    tmp_path: Path, file: str, form: str, extension: str, compression: str | None
) -> None:
    path = tmp_path / file
    path.touch()
    table = parse_table(f"t={path}")
    assert (table.name, table.path, table.format) == ("t", str(path), form)
    assert (table.extension, table.compression) == (extension, compression)


def test_a_directory_is_what_its_files_are(tmp_path: Path) -> None:
    (tmp_path / "year=2024").mkdir()
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.csv").touch()
    (tmp_path / "year=2024" / "part-0.parquet").touch()
    assert parse_table(f"t={tmp_path}").format == "parquet"


def test_the_format_can_be_forced(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.touch()
    assert parse_table(f"t=csv:{path}") == Table("t", str(path), "csv", ".txt")
    assert parse_table(f"t=ndjson:{path}").format == "json"


@pytest.mark.parametrize("path", ["s3://bucket/a=1/t.parquet", "data/*.parquet"])
def test_urls_and_patterns_are_taken_as_they_are(path: str) -> None:
    table = parse_table(f"t={path}")
    assert (table.path, table.format) == (path, "parquet")


def test_an_equals_sign_may_be_part_of_the_path(tmp_path: Path) -> None:
    path = tmp_path / "a=b.csv"
    path.touch()
    assert parse_table(f"t={path}").path == str(path)


@pytest.mark.parametrize("text", ["t", "=a.csv", "t=", "t=no/such/file.parquet"])
def test_what_names_no_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not NAME=PATH|does not exist"):
        parse_table(text)


@pytest.mark.parametrize("name", ["data.txt", "data.csv.lz4", "data"])
def test_an_unknown_extension_is_refused_with_the_way_out(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch()
    with pytest.raises(ValueError, match=r"write t=FORMAT:.*parquet, csv, json, arrow, avro"):
        parse_table(f"t={path}")


@pytest.mark.parametrize("path", ["foo:data/x", "foo:data/*.csv", "foo:s3://bucket/x.csv"])
def test_an_unknown_format_is_refused_with_those_there_are(path: str) -> None:
    with pytest.raises(ValueError, match=r"there is no format 'foo', only parquet, csv, json, arrow, avro"):
        parse_table(f"t={path}")


def test_a_file_with_a_colon_in_its_name_is_no_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ten:30.csv").touch()
    assert parse_table("t=ten:30.csv").path == "ten:30.csv"
    assert parse_table("t=ten:*.csv").path == "ten:*.csv"


def test_a_hint_quotes_names_as_sql_does() -> None:
    error = UserError("table 'datafusion.public.Given' not found")
    assert hint_of(error) == "--table '\"Given\"=PATH' adds it"


def test_a_table_of_another_schema_cannot_come_from_the_command_line() -> None:
    error = UserError("table 'datafusion.sales.t' not found", hint="known tables: u")
    assert hint_of(error) == "known tables: u"


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no files"):
        parse_table(f"t={tmp_path}")


def test_a_name_is_given_once() -> None:
    with pytest.raises(UserError, match="'t' is given twice"):
        check_unique((Table("t", "a.csv", "csv", ".csv"), Table("t", "b.csv", "csv", ".csv")))
