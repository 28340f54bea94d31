"""Writing tables: INSERT OVERWRITE and `write_table`, in memory and in directories."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from sparkfusion import Session, UserError, feeds
from sparkfusion.session.write_modes import check_mode
from tests.behaviour.parts import TOTAL, assert_usable, part

pytestmark = pytest.mark.runners(
    "local", "flight", "spark-local", reason="where rows are put does not depend on where frames are"
)

BROKEN = "select k, v / (v - 3500) as v from t"
SAID = "what is said before anything runs"


@pytest.fixture
def table(session: Session, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A table that holds one row."""
    columns = "(k bigint, v bigint)"
    if request.param == "memory":
        session.sql(f"create table old {columns}")
    else:
        location = tmp_path / "home" / "old"
        session.sql(f"create external table old {columns} stored as {request.param} location '{location}/'")
    session.sql("insert into old values (-1, -1)")
    return "old"


def numbers(session: Session, table: str = "old") -> dict[str, int]:
    (found,) = session.sql(f"select count(*) as n, min(v) as low, max(v) as high from {table}").to_pylist()
    return found


ALL = {"n": TOTAL, "low": 0, "high": TOTAL - 1}
OLD = {"n": 1, "low": -1, "high": -1}


@pytest.mark.parametrize("table", ["memory", "parquet", "csv", "json"], indirect=True)
def test_insert_overwrite_replaces_every_row(session: Session, table: str) -> None:
    counted = session.sql(f"insert overwrite {table} select k, v from t").to_pylist()
    assert counted == [{"count": TOTAL}]
    assert numbers(session) == ALL
    assert session.sql(f"insert overwrite into {table} (v) values (1), (2)").to_pylist() == [{"count": 2}]
    assert numbers(session) == {"n": 2, "low": 1, "high": 2}
    assert session.sql(f"select count(k) as n from {table}").to_pylist() == [{"n": 0}]
    session.sql(f"insert overwrite table {table} select k, v from t where v < 0")
    assert numbers(session)["n"] == 0


@pytest.mark.parametrize("table", ["memory", "parquet"], indirect=True)
def test_an_overwrite_that_fails_leaves_every_row(session: Session, table: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Divide by zero"):
        session.sql(f"insert overwrite {table} {BROKEN}")
    with pytest.raises(UserError, match="Divide by zero"):
        session.sql(BROKEN).write_table(table, mode="overwrite")
    assert numbers(session) == OLD
    assert [path.name for path in (tmp_path / "home").glob("*")] in ([], ["old"])
    assert_usable(session)


@pytest.mark.parametrize("table", ["memory", "csv"], indirect=True)
def test_an_overwrite_reads_what_it_replaces(session: Session, table: str) -> None:
    frame = session.table("t").select("k", "v").union(session.table(table))
    assert frame.write_table(table, mode="overwrite") == TOTAL + 1
    session.sql(f"insert overwrite {table} select k, v + 1 as v from {table} where v >= -1")
    assert numbers(session) == {"n": TOTAL + 1, "low": 0, "high": TOTAL}


@pytest.mark.parametrize("table", ["memory", "parquet"], indirect=True)
def test_views_and_frames_see_the_new_rows(session: Session, table: str) -> None:
    session.sql(f"create view seen as select v from {table}")
    frame = session.table(table)
    session.sql(f"insert overwrite {table} select k, v from t")
    assert numbers(session, "seen") == ALL
    assert frame.count() == TOTAL


@pytest.mark.parametrize("table", ["memory", "parquet"], indirect=True)
def test_modes_of_a_table_that_exists(session: Session, table: str) -> None:
    frame = session.sql("select v, k from t")
    assert frame.write_table(table, mode="ignore") == 0
    with pytest.raises(UserError, match="table 'old' exists"):
        frame.write_table(table, mode="error")
    assert numbers(session) == OLD
    assert frame.write_table(table) == TOTAL
    assert numbers(session) == {**ALL, "n": TOTAL + 1, "low": -1}
    assert frame.limit(3).write_table(table, mode="overwrite") == 3
    assert session.sql(f"select count(*) as n from {table} where k = v % 7").to_pylist() == [{"n": 3}]


@pytest.mark.parametrize("mode", ["overwrite", "error", "ignore"])
def test_a_table_that_does_not_exist_is_made_in_memory(session: Session, mode: str) -> None:
    frame = session.sql("select k, v from t")
    assert frame.write_table("made", mode=check_mode(mode)) == TOTAL
    assert numbers(session, "made") == ALL
    assert session.sql("select v from t where v < 0").write_table("none", mode=check_mode(mode)) == 0
    assert session.sql("insert into none values (1)").to_pylist() == [{"count": 1}]
    with pytest.raises(UserError, match="no table 'nowhere' to append to"):
        frame.write_table("nowhere")


def test_options_and_partitions_of_a_directory(session: Session, tmp_path: Path) -> None:
    columns = "(v bigint, k bigint)"
    options = "options ('format.has_header' 'false', 'format.delimiter' ';', 'format.compression' 'gzip')"
    place = f"'{tmp_path}/it''s here/'"
    made = f"create external table parted {columns} stored as csv partitioned by (k) location {place} {options}"
    session.sql(made)
    session.sql("insert overwrite parted select v, k from t")
    assert (
        session.sql("select count(*) as n, sum(k) as k from parted").to_pylist()
        == session.sql("select count(*) as n, sum(k) as k from t").to_pylist()
    )
    home = tmp_path / "it's here"
    assert sorted(path.name for path in home.iterdir()) == [f"k={k}" for k in range(7)]
    session.sql("insert overwrite parted values (5, 1)")
    (file,) = (path for path in home.rglob("*") if path.is_file())
    assert pa.input_stream(file, compression="gzip").read() == b"5\n"


@pytest.mark.runners("local", reason=SAID)
def test_registered_directories(session: Session, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "a.csv").write_text("k|v\n1|2\n")
    session.register_csv("c", tmp_path / "c", delimiter="|")
    session.sql("insert overwrite c values (3, 4)")
    assert [file.read_text() for file in (tmp_path / "c").iterdir()] == ["k|v\n3|4\n"]
    assert session.sql("select 6 as v, 5 as k").write_table("c") == 1
    assert sorted(map(tuple, (row.values() for row in session.table("c").to_pylist()))) == [(3, 4), (5, 6)]
    (tmp_path / "p").mkdir()
    session.sql("select 1 as v").write_parquet(tmp_path / "p" / "a.parquet")
    session.register_parquet("p", tmp_path / "p")
    session.sql("insert overwrite p select v from p where v > 1")
    assert session.table("p").to_pylist() == []


@pytest.mark.runners("local", reason=SAID)
@pytest.mark.parametrize(
    ("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)], ids=["gz", "bz2", "xz"]
)
def test_registered_directories_of_compressed_files(
    session: Session, tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / f"a.csv.{ending}").write_bytes(pack(b"v\n1\n"))
    session.register_csv("c", tmp_path / "c")
    assert session.sql("select 2 as v").write_table("c") == 1
    assert session.sql("insert into c values (3)").to_pylist() == [{"count": 1}]
    assert session.table("c").sort("v").to_pydict() == {"v": [1, 2, 3]}
    assert {file.suffix for file in (tmp_path / "c").iterdir()} == {f".{ending}"}


@pytest.mark.runners("local", reason=SAID)
def test_rows_that_the_table_would_not_read_are_refused(session: Session, tmp_path: Path) -> None:
    """DataFusion writes them to files whose names end in .json."""
    (tmp_path / "j").mkdir()
    (tmp_path / "j" / "a.jsonl").write_text('{"v": 1}\n')
    session.register_json("j", tmp_path / "j")
    for insert in (lambda: session.sql("insert into j values (2)"), lambda: session.table("j").write_table("j")):
        with pytest.raises(UserError, match=r"cannot run INSERT INTO j: its files end in '\.jsonl'"):
            insert()
    assert [file.name for file in (tmp_path / "j").iterdir()] == ["a.jsonl"]


@pytest.mark.runners("local", reason=SAID)
@pytest.mark.parametrize("columns", ["", "(v bigint)"])
def test_external_tables_of_compressed_files_take_rows(session: Session, tmp_path: Path, columns: str) -> None:
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "a.csv.gz").write_bytes(gzip.compress(b"v\n1\n"))
    options = "'format.compression' 'gzip', 'format.has_header' 'true'"
    session.sql(f"create external table e {columns} stored as csv location '{tmp_path}/e/' options ({options})")
    session.sql("insert into e values (2)")
    assert session.sql("select v from e order by v").to_pydict() == {"v": [1, 2]}


@pytest.mark.runners("local", reason=SAID)
def test_a_name_that_means_another_table_by_now(session: Session, tmp_path: Path) -> None:
    made = "create external table {} (v bigint) stored as csv location '{}/'"
    session.sql(made.format("a", tmp_path / "a"))
    session.sql("insert into a values (1)")
    session.sql("drop table a")
    session.sql("create table a (v bigint)")
    session.sql("insert overwrite a values (2)")
    session.sql(made.format("b", tmp_path / "a"))
    assert session.table("b").to_pylist() == [{"v": 1}]
    session.sql(f"create external table if not exists b (v bigint) stored as csv location '{tmp_path}/other/'")
    session.sql("insert overwrite b values (3)")
    assert not (tmp_path / "other").exists()
    session.sql("create schema s")
    session.sql("create table s.b (v bigint)")
    session.config["datafusion.catalog.default_schema"] = "s"
    session.sql("insert overwrite b values (4)")
    assert session.sql("select v from public.b").to_pylist() == [{"v": 3}]
    assert session.sql("select v from b").to_pylist() == [{"v": 4}]
    session.sql('create table public."T x" (v bigint)')
    assert session.sql("select 1 as v").write_table('public."T x"', mode="overwrite") == 1
    session.sql('insert overwrite public."T x" values (5), (6)')
    assert session.sql('select sum(v) as v from public."T x"').to_pylist() == [{"v": 11}]


@pytest.mark.runners("local", reason=SAID)
def test_explain_runs_nothing_and_analyze_runs_once(session: Session) -> None:
    session.sql("create table old (v bigint)")
    session.sql("insert into old values (-1)")
    text = session.sql("explain insert overwrite old select v from t").to_pydict()["plan"][-1]
    assert "stage" in text
    assert numbers(session) == OLD
    session.sql("explain analyze insert overwrite old select v from t")
    assert numbers(session) == ALL


@pytest.mark.runners("local", reason=SAID)
def test_what_cannot_be_written_is_refused(session: Session, tmp_path: Path) -> None:
    rows = session.sql("select v from t")
    session.sql("create view seen as select v from t")
    rows.write_parquet(tmp_path / "one.parquet")
    session.register_parquet("one", tmp_path / "one.parquet")
    session.sql(f"create external table ordered (v bigint) stored as csv with order (v) location '{tmp_path}/ordered/'")
    session.sql(f"create external table wide (v bigint) stored as csv location '{tmp_path}/wide/'")
    (tmp_path / "wide" / "other").mkdir(parents=True)
    reasons = {"seen": "it is a view", "one": "a single file", "ordered": "WITH ORDER", "wide": "would be removed"}
    for table, why in reasons.items():
        with pytest.raises(UserError, match=f"cannot run INSERT OVERWRITE {table}: .*{why}"):
            session.sql(f"insert overwrite {table} select v from t")
        with pytest.raises(UserError, match=f"cannot run INSERT OVERWRITE {table}: .*{why}"):
            rows.write_table(table, mode="overwrite")
    with pytest.raises(UserError, match="cannot run INSERT INTO seen: it is a view"):
        rows.write_table("seen")
    session.sql("create table strict (v bigint not null) as values (1)")
    with pytest.raises(UserError, match="column 'v' must not be NULL, but the new rows have NULLs: 1"):
        session.sql("insert overwrite strict select nullif(v, 7) from t")
    assert session.table("strict").to_pylist() == [{"v": 1}]
    with pytest.raises(UserError, match="it has the columns v, and the rows k, v"):
        session.sql("select k, v from t").write_table("strict")
    with pytest.raises(UserError, match="unknown write mode 'replace'"):
        rows.write_table("strict", mode="replace")  # type: ignore[arg-type]


@pytest.mark.parametrize("table", ["memory", "parquet"], indirect=True)
def test_rows_of_a_feed_are_written_and_a_feed_is_not(session: Session, table: str, tmp_path: Path) -> None:
    session.register_feed("fed", feeds.Files(tmp_path / "parts"), schema=part(0).schema, format="parquet")
    session.sql(f"insert overwrite {table} select k, v from fed")
    assert numbers(session) == ALL
    assert session.sql("select k, v from fed").write_table(table) == TOTAL
    assert numbers(session) == {**ALL, "n": 2 * TOTAL}
    for mode in ("append", "overwrite"):
        with pytest.raises(UserError, match="fed is a feed"):
            session.table("t").write_table("fed", mode=check_mode(mode))
