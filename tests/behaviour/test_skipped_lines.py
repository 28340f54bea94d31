"""`on_error="skip"`: lines of CSV and JSON that cannot be read are left out, counted and shown."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datafusion.options import CsvReadOptions

from sparkfusion import FileUnit, Session, UserError
from sparkfusion.observe.events import Event, RowsRejected
from tests.behaviour.parts import DISTRIBUTED
from tests.conftest import Connect
from tests.suites.feeds import Scripted

LINES = 40
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])
BAD = {
    "csv": {
        7: ("x,1", "Error while parsing value 'x' as type 'Int64' for column 'a'"),
        8: ("1,2,3", "incorrect number of fields, expected 2 got 3"),
        20: ("1", "incorrect number of fields, expected 2 got 1"),
        40: ('1,"2', "a quote is opened and not closed"),
    },
    "json": {
        7: ('{"a": "x", "b": 1}', "whilst decoding field 'a': failed to parse \"x\" as Int64"),
        8: ('{"a": 1, "b": 2} {"a": 1, "b": 2}', "the line is not one object"),
        20: ('{"a": 1, "b": ', "Truncated record whilst reading value"),
        40: ("1", "expected { got 1"),
    },
}


@pytest.fixture
def session(connect: Connect) -> Session:
    return connect(DISTRIBUTED)


def write_lines(directory: Path, format: str, files: int = 3) -> Path:
    """Files of which the second has the bad lines."""
    directory.mkdir()
    for number in range(files):
        lines = [f"{row},{row}" if format == "csv" else json.dumps({"a": row, "b": row}) for row in range(LINES)]
        if format == "csv":
            lines.insert(0, "a,b")
        if number == 1:
            for line, (text, _) in BAD[format].items():
                lines[line - 1] = text
        (directory / f"{number}.{format}").write_text("\n".join(lines) + "\n")
    return directory


def good_rows(format: str) -> list[int]:
    """The values of `a` in all files."""
    header = 1 if format == "csv" else 0
    bad = {line - 1 - header for line in BAD[format]}
    return sorted([*range(LINES)] * 2 + [row for row in range(LINES) if row not in bad])


@pytest.mark.parametrize("format", BAD)
def test_bad_lines_are_left_out_and_told(
    session: Session, tmp_path: Path, format: str, caplog: pytest.LogCaptureFixture
) -> None:
    home = write_lines(tmp_path / "rows", format)
    getattr(session, f"register_{format}")("rows", home, schema=SCHEMA, on_error="skip")
    events: list[Event] = []
    session.subscribe(events.append)
    with (
        caplog.at_level(logging.WARNING, "sparkfusion"),
        session.sql("select a, count(*) as n from rows group by a").stream() as running,
    ):
        found = [row["a"] for batch in running for row in batch.to_pylist() for _ in range(row["n"])]
        (rejected,) = running.rejected()
    assert sorted(found) == good_rows(format)
    assert (rejected.table, rejected.count) == ("rows", len(BAD[format]))
    assert {line.file for line in rejected.first} == {str(home / f"1.{format}")}
    for line, (number, (text, why)) in zip(rejected.first, BAD[format].items(), strict=True):
        assert (line.line, line.text) == (number, text)
        assert line.why == why
    (event,) = [event for event in events if isinstance(event, RowsRejected)]
    assert (event.query, event.table, event.count, event.first) == (running.id, "rows", 4, rejected.first)
    (words,) = [record.getMessage() for record in caplog.records if "skipped" in record.getMessage()]
    assert f"skipped 4 lines of table 'rows': '{home}/1.{format}', line 7: " in words


@pytest.mark.parametrize("format", BAD)
@pytest.mark.runners("local", reason="which reader is chosen does not depend on where it runs")
def test_the_default_is_to_fail(session: Session, tmp_path: Path, format: str) -> None:
    home = write_lines(tmp_path / "rows", format)
    read = getattr(session, f"read_{format}")
    with pytest.raises(UserError, match=f"cannot read '.*/1.{format}'"):
        read(home, schema=SCHEMA, on_error="fail").collect()
    assert sorted(read(home, schema=SCHEMA, on_error="skip").to_pydict()["a"]) == good_rows(format)


def test_each_table_of_a_query_is_told_once(session: Session, tmp_path: Path) -> None:
    for name in ("t", "u"):
        session.register_csv(name, write_lines(tmp_path / name, "csv"), schema=SCHEMA, on_error="skip")
    query = "select count(*) as n from t join t as again on t.a = again.b join u on u.a = t.a"
    with session.sql(query).stream() as running:
        (row,) = pa.Table.from_batches(running).to_pylist()
        rejected = running.rejected()
    kept = good_rows("csv")
    assert row["n"] == sum(kept.count(value) ** 3 for value in set(kept))
    assert [(each.table, each.count) for each in rejected] == [("t", 4), ("u", 4)]


def test_a_copy_is_told_once(session: Session, tmp_path: Path) -> None:
    session.register_csv("t", write_lines(tmp_path / "t", "csv"), schema=SCHEMA, on_error="skip")
    events: list[Event] = []
    session.subscribe(events.append)
    assert session.sql("select a from t").write_parquet(tmp_path / "out") == len(good_rows("csv"))
    assert [event.count for event in events if isinstance(event, RowsRejected)] == [4]


def test_columns_are_guessed_from_the_lines_that_can_be_read(session: Session, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n1,2,3\n2,y\n")
    (tmp_path / "t.json").write_text('{"a": 1, "b": "x"}\n{"a": 1,\n{"a": 2, "b": "y"}\n')
    wanted = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert session.read_csv(tmp_path / "t.csv", on_error="skip").sort("a").to_pylist() == wanted
    assert session.read_json(tmp_path / "t.json", on_error="skip").sort("a").to_pylist() == wanted


GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "quotes": ('a,b\n1,"x, ""y"""\n2,5" pipe\n3,""\n4,\n', {}),
    "types": (
        "b,d,t,f\ntrue,2024-02-29,2024-02-29T01:02:03.5,1e3\nFALSE,1969-01-01,1970-01-01 00:00:00,-0.5\n,,,\n",
        {},
    ),
    "no header": ("1,x\r\n2,y\r\n\r\n3,z", {"has_header": False}),
    "delimiter, quote, escape, comment": (
        "a;b\n# no row\n1;'x\\'y; z'\n2;#\n",
        {"delimiter": ";", "quote": "'", "escape": "\\", "comment": "#"},
    ),
    "short rows": ("a,b\n1\n2,y\n", {"truncated_rows": True}),
    "byte order mark": ("\ufeffa,b\n1,x\n", {}),
}


@pytest.mark.parametrize("what", GOOD)
@pytest.mark.runners("local", reason="DataFusion parses lines the same everywhere")
def test_good_csv_is_read_as_without(session: Session, tmp_path: Path, what: str) -> None:
    text, options = GOOD[what]
    (tmp_path / "t.csv").write_text(text, newline="")
    chosen = CsvReadOptions(**options)
    usual = session.read_csv(tmp_path / "t.csv", options=chosen)
    skipping = session.read_csv(tmp_path / "t.csv", options=chosen, on_error="skip")
    assert skipping.schema() == usual.schema()
    assert sorted(map(str, skipping.to_pylist())) == sorted(map(str, usual.to_pylist())) != []


@pytest.mark.parametrize("kind", [pa.decimal128(9, 2), pa.date32(), pa.timestamp("ms", "UTC"), pa.bool_(), pa.int8()])
@pytest.mark.runners("local", reason="DataFusion parses lines the same everywhere")
def test_what_passes_is_what_datafusion_reads(session: Session, tmp_path: Path, kind: pa.DataType) -> None:
    values = [
        "1",
        "127",
        "128",
        "1.005",
        "-0",
        "",
        "true",
        "yes",
        "2024-01-31",
        "2024-02-30",
        "2024-01-31T10:00:00+02:00",
    ]
    schema, wanted = pa.schema([("v", kind), ("w", pa.string())]), []
    for value in values:
        (tmp_path / "one.csv").write_text(f"v,w\n{value},.\n")
        try:
            wanted += session.read_csv(tmp_path / "one.csv", schema=schema).to_pylist()
        except UserError:
            continue
    (tmp_path / "all.csv").write_text("v,w\n" + "".join(f"{value},.\n" for value in values))
    assert 0 < len(wanted) < len(values)
    assert session.read_csv(tmp_path / "all.csv", schema=schema, on_error="skip").to_pylist() == wanted


@pytest.mark.runners("local", reason="DataFusion parses lines the same everywhere")
def test_good_json_is_read_as_without(session: Session, tmp_path: Path) -> None:
    rows = [{"a": 1, "b": {"c": [1, None]}, "d": "é\n"}, {"a": None, "d": ""}, {"b": {"c": []}, "e": 1.5}]
    (tmp_path / "t.jsonl").write_text("\n \n".join(map(json.dumps, rows)))
    usual = session.read_json(tmp_path / "t.jsonl")
    skipping = session.read_json(tmp_path / "t.jsonl", on_error="skip")
    assert skipping.schema() == usual.schema()
    assert sorted(map(str, skipping.to_pylist())) == sorted(map(str, usual.to_pylist())) != []


def test_partition_columns_and_endings(session: Session, tmp_path: Path) -> None:
    for year in ("2023", "__HIVE_DEFAULT_PARTITION__"):
        home = tmp_path / "t" / f"year={year}"
        home.mkdir(parents=True)
        (home / "0.txt").write_text("a,b\n1,2\nx,2\n")
    (tmp_path / "t" / "_SUCCESS").touch()
    options = CsvReadOptions(schema=SCHEMA, file_extension=".txt")
    session.register_csv("t", str(tmp_path / "t"), options=options, on_error="skip")
    found = session.sql("select * from t order by year").to_pylist()
    assert found == [{"a": 1, "b": 2, "year": 2023}, {"a": 1, "b": 2, "year": None}]


def test_a_feed_of_files_skips_lines(session: Session, tmp_path: Path) -> None:
    home = write_lines(tmp_path / "rows", "csv")
    units = [FileUnit(path, partition_values={"day": path.name}) for path in sorted(home.iterdir())]
    days = [("day", pa.string())]
    session.register_feed("rows", Scripted(units), schema=SCHEMA, format="csv", partition_columns=days, on_error="skip")
    found = session.sql("select day, count(*) as n from rows group by day order by day").to_pylist()
    assert [row["n"] for row in found] == [LINES, LINES - 4, LINES]


@pytest.mark.parametrize("format", BAD)
def test_sql_creates_such_tables(session: Session, tmp_path: Path, format: str) -> None:
    home = write_lines(tmp_path / "it's", format)
    quoted = str(home).replace("'", "''")
    create = f"create external table Rows (a bigint, b bigint) stored as {format} location '{quoted}'"
    session.sql(f"{create} options ('sparkfusion.on_error' 'skip')")
    assert session.sql("select a from rows order by a").to_pydict()["a"] == good_rows(format)


@pytest.mark.runners("local", reason="is read from the statement before anything runs")
def test_options_of_the_statement(session: Session, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1;'x;y'\n1;2;3\n")
    create = f"external table t stored as csv location '{tmp_path}/t.csv'"
    form = "'format.delimiter' ';', format.quote '''', 'format.has_header' 'false'"
    session.sql(f"create {create} options ({form}, 'sparkfusion.on_error' 'skip')")
    assert [list(row.values()) for row in session.table("t").to_pylist()] == [[1, "x;y"]]
    with pytest.raises(UserError, match="table t exists already"):
        session.sql(f"create {create} options ('sparkfusion.on_error' 'skip')")
    session.sql(f"create {create} options (sparkfusion.on_error skip)".replace("table t", "table if not exists t"))
    with pytest.raises(UserError, match="unknown on_error 'never'"):
        session.sql(f"create or replace {create} options ('sparkfusion.on_error' 'never')")
    with pytest.raises(UserError, match=r"option 'format.null_regex' and on_error 'skip' cannot be combined"):
        session.sql(f"create or replace {create} options (sparkfusion.on_error skip, 'format.null_regex' 'NA')")
    (tmp_path / "t.csv").write_text("a,b\n1,x\n")
    session.sql(f"create or replace {create} options ('sparkfusion.on_error' 'skip')")
    assert session.table("t").to_pylist() == [{"a": 1, "b": "x"}]
    session.sql(f"create or replace {create} options ('sparkfusion.on_error' 'fail', 'format.has_header' 'false')")
    assert session.table("t").count() == 2


@pytest.mark.runners("local", reason="is refused before anything runs")
def test_what_cannot_be_skipped_is_refused(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="unknown on_error 'ignore'") as caught:
        session.register_csv("t", path, on_error="ignore")
    assert caught.value.hint == "one of fail, skip"
    with pytest.raises(UserError, match="for lines of CSV and JSON, not for parquet"):
        session.register_parquet("t", path, on_error="skip")
    with pytest.raises(UserError, match="newlines_in_values and on_error='skip' cannot be combined"):
        session.read_csv(path, options=CsvReadOptions(newlines_in_values=True), on_error="skip")
    with pytest.raises(UserError, match="does not read compressed files"):
        session.read_csv(path, file_compression_type="gzip", on_error="skip")


@pytest.mark.runners("local", reason="columns are guessed before anything runs")
def test_one_text_among_numbers_of_json_is_the_line_that_is_left_out(session: Session, tmp_path: Path) -> None:
    """DataFusion guesses a text, and its reader takes no number for one."""
    rows = [{"n": number, "x": number + 0.5, "t": str(number)} for number in range(20)]
    rows[7]["n"] = "unknown"
    (tmp_path / "t.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = session.read_json(tmp_path / "t.json", on_error="skip").collect()
    assert read.num_rows == 19
    assert {field.name: field.type for field in read.schema} == {
        "n": pa.int64(), "x": pa.float64(), "t": pa.string()
    }  # fmt: skip
