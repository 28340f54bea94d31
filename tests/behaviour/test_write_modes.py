"""Modes of writing: what is there already is added to, replaced whole, or left alone."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion import DataFrame, Session, UserError
from sparkfusion.session.write_modes import check_mode
from tests.behaviour.parts import TOTAL, assert_usable, part

pytestmark = pytest.mark.runners(
    "local", "flight", "spark-local", reason="where rows are put does not depend on where frames are"
)

BROKEN = "select v / (v - 3500) as v from t"
SAID = "what is said before anything runs"


@pytest.fixture
def frame(session: Session) -> DataFrame:
    return session.sql("select k, v from t where v >= 0")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A directory that holds rows of an earlier write."""
    home = tmp_path / "home" / "out"
    home.mkdir(parents=True)
    pq.write_table(pa.table({"k": [-1], "v": [-1]}), home / "old.parquet")
    return home


def rows_in(directory: Path) -> int:
    return sum(pq.read_table(file).num_rows for file in directory.rglob("*.parquet"))


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_overwrite_replaces_the_whole_directory(frame: DataFrame, old: Path) -> None:
    assert frame.write_parquet(old, mode="overwrite") == TOTAL
    assert rows_in(old) == TOTAL
    assert "old.parquet" not in names_in(old)
    assert names_in(old.parent) == ["out"]
    assert frame.write_csv(old, mode="overwrite", partition_by=["k"]) == TOTAL
    assert len(names_in(old)) == 7
    assert not list(old.rglob("*.parquet"))


def test_an_overwrite_that_fails_leaves_what_was_there(session: Session, old: Path) -> None:
    with pytest.raises(UserError, match="Divide by zero"):
        session.sql(BROKEN).write_parquet(old, mode="overwrite")
    assert names_in(old) == ["old.parquet"]
    assert names_in(old.parent) == ["out"]
    assert_usable(session)


def test_overwrite_what_the_query_reads(session: Session, old: Path) -> None:
    for number in range(4):
        pq.write_table(part(number).select(["k", "v"]), old / f"{number}.parquet")
    session.register_parquet("rows_there", old)
    assert session.sql("select k, v from rows_there where v % 2 = 0").write_parquet(old, mode="overwrite") == TOTAL // 2
    assert rows_in(old) == TOTAL // 2
    assert session.sql("select count(*) as n from rows_there where v % 2 = 0").to_pylist() == [{"n": TOTAL // 2}]


@pytest.mark.parametrize("distributed", [True, False], ids=["distributed", "single-node"])
def test_error_and_ignore_leave_it_alone(session: Session, frame: DataFrame, old: Path, distributed: bool) -> None:
    session.config["sparkfusion.enabled"] = distributed
    with pytest.raises(UserError, match=r"out' exists"):
        frame.write_parquet(old, mode="error")
    assert frame.write_parquet(old, mode="ignore") == 0
    assert names_in(old) == ["old.parquet"]
    for number, mode in enumerate(("error", "ignore", "overwrite", "append")):
        new = old.parent / f"new{number}" / "deep"
        assert frame.write_parquet(new, mode=check_mode(mode)) == TOTAL, mode
        assert rows_in(new) == TOTAL
        assert names_in(new.parent) == ["deep"]


def test_modes_on_a_single_node(session: Session, frame: DataFrame, old: Path) -> None:
    session.config["sparkfusion.enabled"] = False
    with pytest.raises(UserError, match="Divide by zero"):
        session.sql(BROKEN).write_parquet(old, mode="overwrite")
    assert names_in(old) == ["old.parquet"]
    assert frame.write_json(old, mode="overwrite") == TOTAL
    assert not list(old.rglob("*.parquet"))
    assert names_in(old.parent) == ["out"]


@pytest.mark.parametrize("distributed", [True, False], ids=["distributed", "single-node"])
def test_an_append_that_fails_adds_no_file(session: Session, old: Path, distributed: bool) -> None:
    session.config["sparkfusion.enabled"] = distributed
    session.config["datafusion.execution.soft_max_rows_per_output_file"] = 100
    session.config["datafusion.execution.batch_size"] = 50
    broken = session.sql(BROKEN)
    for frame in (broken, broken.limit(TOTAL - 1)):
        for path in (old, old.parent / "new"):
            with pytest.raises(UserError, match="Divide by zero"):
                frame.write_parquet(path)
    session.sql("copy (select * from t limit 1000) to '{old}'".replace("{old}", str(old)) + " stored as parquet")
    assert rows_in(old) == 1001
    assert names_in(old.parent) == ["out"]


def test_append_is_the_default(frame: DataFrame, old: Path) -> None:
    frame.write_parquet(old, mode="append")
    frame.write_parquet(old)
    assert rows_in(old) == 2 * TOTAL + 1


def test_no_rows_replace_rows(session: Session, old: Path) -> None:
    assert session.sql("select k, v from t where v < 0").write_parquet(old, mode="overwrite") == 0
    assert rows_in(old) == 0


def test_files(frame: DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "one.parquet"
    assert frame.write_parquet(path, mode="error") == TOTAL
    with pytest.raises(UserError, match=r"one\.parquet' exists"):
        frame.write_parquet(path, mode="error")
    with pytest.raises(UserError, match="cannot append to the file"):
        frame.write_parquet(path, mode="append")
    assert frame.limit(3).write_parquet(path, mode="ignore") == 0
    assert frame.limit(3).write_parquet(path, mode="overwrite") == 3
    assert pq.read_table(path).num_rows == 3


def test_copy_statement(session: Session, old: Path) -> None:
    query = "copy (select k, v from t) to '{}' stored as {} options ({})"
    counted = session.sql(query.format(old, "parquet", "'sparkfusion.mode' 'overwrite'")).to_pylist()
    assert counted == [{"count": TOTAL}]
    assert rows_in(old) == TOTAL
    ignored = query.format(old, "csv", "'format.has_header' 'true', sparkfusion.mode ignore")
    assert session.sql(ignored).to_pylist() == [{"count": 0}]
    with pytest.raises(UserError, match="exists"):
        session.sql(query.format(old, "csv", "'sparkfusion.mode' 'error', 'format.has_header' 'true'"))
    assert rows_in(old) == TOTAL


def test_a_value_that_looks_like_a_mode_is_none(session: Session, tmp_path: Path) -> None:
    options = "'format.null_value' 'sparkfusion.mode ignore', 'format.has_header' 'false'"
    session.sql(f"copy (select null as v) to '{tmp_path}/a.csv' stored as csv options ({options})").collect()
    assert (tmp_path / "a.csv").read_text() == "sparkfusion.mode ignore\n"


def test_where_names_cannot_be_exchanged(frame: DataFrame, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *args, **kwargs: object())
    assert frame.write_parquet(old, mode="overwrite") == TOTAL
    assert rows_in(old) == TOTAL
    assert names_in(old.parent) == ["out"]


@pytest.mark.runners("local", reason=SAID)
def test_a_link_stays_a_link(frame: DataFrame, old: Path) -> None:
    link = old.parent / "link"
    link.symlink_to(old)
    frame.write_parquet(link, mode="overwrite")
    assert link.is_symlink()
    assert rows_in(old) == TOTAL


@pytest.mark.runners("local", reason=SAID)
def test_what_has_no_mode_is_refused(frame: DataFrame, old: Path) -> None:
    with pytest.raises(UserError, match="unknown write mode 'replace'") as caught:
        frame.write_parquet(old, mode="replace")  # type: ignore[arg-type]
    assert "append, overwrite, error, ignore" in str(caught.value)
    with pytest.raises(UserError, match=r"cannot overwrite 's3://bucket/x'"):
        frame.write_parquet("s3://bucket/x", mode="overwrite")
    (old.parent / "file").touch()
    with pytest.raises(UserError, match="it is a file"):
        frame.write_parquet(old.parent / "file", mode="overwrite")
