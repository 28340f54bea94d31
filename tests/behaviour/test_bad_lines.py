"""Lines of CSV and JSON that cannot be read: errors name the file and its line, whoever reads which part of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import FileUnit, Session, UserError
from tests.behaviour.parts import DISTRIBUTED
from tests.conftest import Connect
from tests.suites.feeds import Scripted

pytestmark = pytest.mark.runners(
    "local", "flight", "spark-local", reason="how files are read does not depend on where frames are"
)

LINES = 400
BAD = 301
"""The line of the bad row; a task that reads a part of the file counts from somewhere else."""
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])
TEXTS = {
    "a value": ("csv", "x,1", r"Error while parsing value 'x' as type 'Int64' for column 'a'"),
    "too many fields": ("csv", "1,2,3", "incorrect number of fields"),
    "another type": ("json", '{"a": "x", "b": 1}', "failed to parse"),
    "half an object": ("json", '{"a": 1, "b": ', "Truncated record|unexpected"),
}


@pytest.fixture(params=[True, False], ids=["distributed", "single-node"])
def session(connect: Connect, request: pytest.FixtureRequest) -> Session:
    return connect(DISTRIBUTED | {"sparkfusion.enabled": request.param})


def write_lines(directory: Path, format: str, bad: str | None, files: int = 3) -> Path:
    """Files of which the second has the bad line."""
    directory.mkdir()
    for number in range(files):
        lines = [f"{row},{row}" if format == "csv" else json.dumps({"a": row, "b": row}) for row in range(LINES)]
        if format == "csv":
            lines.insert(0, "a,b")
        if bad is not None and number == 1:
            lines[BAD - 1] = bad
        (directory / f"{number}.{format}").write_text("\n".join(lines) + "\n")
    return directory


@pytest.mark.parametrize("what", TEXTS)
def test_the_file_and_its_line_are_named(session: Session, tmp_path: Path, what: str) -> None:
    format, bad, words = TEXTS[what]
    home = write_lines(tmp_path / "rows", format, bad)
    getattr(session, f"register_{format}")("rows", home, schema=SCHEMA)
    with pytest.raises(UserError, match=words) as caught:
        session.sql("select a, count(*) from rows where b >= 0 group by a").collect()
    assert f"cannot read '{home}/1.{format}', line {BAD}: " in caught.value.message
    assert bad in caught.value.message
    assert session.sql("select 1 as one").to_pylist() == [{"one": 1}]


def test_a_good_file_is_not_blamed_for_the_query(session: Session, tmp_path: Path) -> None:
    session.register_csv("rows", write_lines(tmp_path / "rows", "csv", None), schema=SCHEMA)
    with pytest.raises(UserError) as caught:
        session.sql("select to_timestamp(concat('no time ', a)) from rows").collect()
    assert "cannot read '" not in caught.value.message


def test_other_columns_are_named(session: Session, tmp_path: Path) -> None:
    home = write_lines(tmp_path / "rows", "csv", None)
    (home / "1.csv").write_text("a,b,c\n1,2,3\n")
    session.register_csv("rows", home, schema=SCHEMA)
    with pytest.raises(UserError, match=r"rows/1\.csv', line [12]: ") as caught:
        session.sql("select sum(a) as s from rows").collect()
    assert caught.value.hint == "the columns of the table are a, b; those of the file are a, b, c"


@pytest.mark.parametrize("session", [True], ids=["distributed"], indirect=True)
def test_lines_of_feeds(session: Session, tmp_path: Path) -> None:
    home = write_lines(tmp_path / "rows", "json", TEXTS["another type"][1])
    units = Scripted([FileUnit(str(path)) for path in sorted(home.iterdir())])
    session.register_feed("fed", units, schema=SCHEMA, format="json")
    with pytest.raises(UserError, match=rf"table 'fed'.*rows/1\.json', line {BAD}: "):
        session.sql("select sum(a) as s from fed").collect()


def test_compressed_files_are_named(session: Session, tmp_path: Path) -> None:
    """They cannot be read in parts."""
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(b"a,b\n1,1\nx,2\n"))
    with pytest.raises(UserError, match="Error while parsing value") as caught:
        session.read_csv(packed, schema=SCHEMA).collect()
    assert "packed.csv.gz" in str(caught.value)


@pytest.mark.parametrize("session", [True], ids=["distributed"], indirect=True)
@pytest.mark.runners("local", reason="nothing runs: it is about what is registered")
def test_types_that_do_not_go_together_name_the_file(session: Session, tmp_path: Path) -> None:
    for number, value in enumerate((1, 2, "text", 4)):
        pq.write_table(pa.table({"a": [value]}), tmp_path / f"{number}.parquet")
    with pytest.raises(UserError, match=r"table 'rows'.*'a' is string\w* in .*/2\.parquet' and int64 in .*/0\."):
        session.register_parquet("rows", tmp_path)
    with pytest.raises(UserError, match=r"2\.parquet"):
        _ = session.read_parquet(tmp_path)
