"""Tables over directories as Hive, Spark and others write them: partition columns, NULL partitions, hidden files."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from sparkfusion import DataFrame, Session, UserError
from tests.behaviour.parts import DISTRIBUTED, assert_distributed_like_single_node
from tests.conftest import Connect

pytestmark = pytest.mark.runners(
    "local", "flight", "spark-local", reason="how files are found does not depend on where frames are"
)

NULL = "__HIVE_DEFAULT_PARTITION__"
SAID = "nothing runs: it is about what is registered"


@pytest.fixture
def session(connect: Connect) -> Session:
    return connect(DISTRIBUTED)


def _write_arrow(rows: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(str(path), rows.schema) as writer:
        writer.write_table(rows)


def _write_json(rows: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_pylist()))


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": pq.write_table,
    "csv": pa_csv.write_csv,
    "json": _write_json,
    "arrow": _write_arrow,
}


def write_hive(home: Path, format: str = "parquet", years: tuple[str, ...] = ("2023", "2024", NULL)) -> Path:
    """Directories year=…/place=…, three rows in each, with the things that writers leave beside them."""
    for number, year in enumerate(years):
        for place in ("a%2Fb", NULL):
            directory = home / f"year={year}" / f"place={place}"
            directory.mkdir(parents=True)
            rows = pa.table({"v": [10 * number, 10 * number + 1, 10 * number + 2]})
            WRITERS[format](rows, directory / f"part.{format}")
            (directory / f".part.{format}.crc").write_bytes(b"\0\1")
    (home / "_SUCCESS").touch()
    (home / "_temporary" / "0").mkdir(parents=True)
    (home / "_temporary" / "0" / f"part.{format}").write_bytes(b"not a row")
    return home


def assert_hive(frame: DataFrame, table: str) -> None:
    assert [field.name for field in frame.schema()] == ["v", "year", "place"]
    found = assert_distributed_like_single_node(frame)
    assert found.schema.field("year").type == pa.int64(), table
    places = {(row["year"], row["place"]) for row in found.to_pylist()}
    assert places == {(year, place) for year in (2023, 2024, None) for place in ("a/b", None)}
    assert found.num_rows == 18


@pytest.mark.parametrize("format", WRITERS)
def test_partition_columns_are_found(session: Session, tmp_path: Path, format: str) -> None:
    home = write_hive(tmp_path / "t", format)
    getattr(session, f"register_{format}")("t", home)
    assert_hive(session.table("t"), "registered")
    assert_hive(getattr(session, f"read_{format}")(home), "read")


def test_conditions_on_partitions_prune_directories(session: Session, tmp_path: Path) -> None:
    session.register_parquet("t", write_hive(tmp_path / "t"))
    for condition, rows, files in (("year = 2024", 6, 2), ("year is null and place is null", 3, 1), ("year < 0", 0, 0)):
        frame = session.sql(f"select v, year, place from t where {condition}")
        assert frame.to_datafusion().execution_plan().display_indent().count("part.parquet") == files, condition
        assert frame.collect().num_rows == rows, condition


@pytest.mark.runners("local", reason=SAID)
def test_hive_false_reads_files_alone(session: Session, tmp_path: Path) -> None:
    home = write_hive(tmp_path / "t")
    session.register_parquet("t", home, hive=False)
    assert session.table("t").schema().names == ["v"]
    assert session.read_parquet(home, hive=False).collect().num_rows == 18


def test_columns_that_are_given_have_nulls_too(session: Session, tmp_path: Path) -> None:
    home = write_hive(tmp_path / "t")
    given = [("year", pa.int32()), ("place", pa.string())]
    session.register_parquet("t", home, table_partition_cols=given)
    found = assert_distributed_like_single_node(session.sql("select year, place, count(*) as n from t group by 1, 2"))
    assert found.schema.types[:2] == [pa.int32(), pa.string()]
    assert None in found.column("year").to_pylist()


@pytest.mark.runners("local", reason=SAID)
def test_given_columns_without_copy_partitions_keep_insert(session: Session, tmp_path: Path) -> None:
    (tmp_path / "t" / "k=1").mkdir(parents=True)
    pq.write_table(pa.table({"v": [1]}), tmp_path / "t" / "k=1" / "0.parquet")
    session.register_parquet("t", tmp_path / "t", table_partition_cols=[("k", pa.int64())])
    session.sql("insert into t values (2, 7)").collect()
    assert (tmp_path / "t" / "k=7").is_dir()
    assert session.sql("select v, k from t order by v").to_pylist() == [{"v": 1, "k": 1}, {"v": 2, "k": 7}]


@pytest.mark.runners("local", reason=SAID)
def test_a_partition_column_that_is_in_the_files_too(session: Session, tmp_path: Path) -> None:
    (tmp_path / "t" / "k=1").mkdir(parents=True)
    pq.write_table(pa.table({"k": ["of the file"], "v": [1]}), tmp_path / "t" / "k=1" / "0.parquet")
    assert session.read_parquet(tmp_path / "t").to_pylist() == [{"v": 1, "k": 1}]
    session.register_parquet("t", tmp_path / "t")
    assert session.table("t").to_pylist() == [{"v": 1, "k": 1}]
    pa_csv.write_csv(pa.table({"k": ["of the file"], "v": [1]}), tmp_path / "t" / "k=1" / "0.csv")
    with pytest.raises(UserError, match="column 'k' is in the files as well") as caught:
        session.register_csv("c", tmp_path / "t")
    assert "hive=False" in str(caught.value)
    assert not session.table_exist("c")


@pytest.mark.runners("local", reason=SAID)
def test_files_with_other_partitions_are_named(session: Session, tmp_path: Path) -> None:
    home = write_hive(tmp_path / "t")
    pq.write_table(pa.table({"v": [1]}), home / "loose.parquet")
    with pytest.raises(UserError, match=r"loose\.parquet") as caught:
        session.register_parquet("t", home)
    assert "hive=False" in str(caught.value)
    session.register_parquet("t", home, hive=False)
    assert session.table("t").collect().num_rows == 19


def test_hidden_files_are_not_read(session: Session, tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(pa.table({"v": [number]}), tmp_path / f"{number}.parquet")
    pq.write_table(pa.table({"v": [7]}), tmp_path / "_3.parquet")
    pq.write_table(pa.table({"v": [8]}), tmp_path / ".4.parquet")
    session.register_parquet("t", tmp_path)
    assert sorted(assert_distributed_like_single_node(session.table("t")).column("v").to_pylist()) == [0, 1, 2]


@pytest.mark.runners("local", reason=SAID)
def test_hidden_files_are_not_read_by_url(session: Session, tmp_path: Path) -> None:
    home = tmp_path / "my files"
    home.mkdir()
    (home / "0.csv").write_text("v\n0\n")
    (home / "_1.csv").write_text("v\n7\n")
    url = f"{home.as_uri()}/"
    session.sql(f"create external table t stored as csv location '{url}' options (has_header true)")
    for rows in (session.read_csv(url), session.table("t")):
        assert rows.to_pydict() == {"v": [0]}


@pytest.mark.parametrize("partitioned", ["", "partitioned by (year, place)"])
def test_external_tables(session: Session, tmp_path: Path, partitioned: str) -> None:
    home = write_hive(tmp_path / "it's t")
    at = str(home).replace("'", "''")
    session.sql(f"create external table t stored as parquet {partitioned} location '{at}/'")
    found = assert_distributed_like_single_node(session.sql("select cast(year as string) as y, place, v from t"))
    assert {row["y"] for row in found.to_pylist()} == {"2023", "2024", None}
    assert session.sql("select v from t where year is null").collect().num_rows == 6


@pytest.mark.runners("local", reason=SAID)
def test_external_tables_beside_an_empty_success_file(session: Session, tmp_path: Path) -> None:
    (tmp_path / "k=1").mkdir()
    pq.write_table(pa.table({"v": [1]}), tmp_path / "k=1" / "0.parquet")
    (tmp_path / "_SUCCESS").touch()
    session.sql(f"create external table t stored as parquet location '{tmp_path}/'")
    assert session.table("t").to_pylist() == [{"v": 1, "k": "1"}]
    session.sql(f"create external table if not exists t stored as parquet location '{tmp_path}/'")


@pytest.mark.runners("local", reason=SAID)
def test_an_external_table_with_numbers_and_a_null_partition_is_refused(session: Session, tmp_path: Path) -> None:
    home = write_hive(tmp_path / "t")
    columns = "v bigint, year int, place string"
    with pytest.raises(UserError, match=r"partition column 'year' is int32, and a directory year=__HIVE"):
        session.sql(
            f"create external table t ({columns}) stored as parquet partitioned by (year, place) location '{home}/'"
        )
    assert not session.table_exist("t")


@pytest.mark.parametrize("ending", [".jsonl", ".ndjson", ".json"])
def test_lines_of_json_by_any_ending(session: Session, tmp_path: Path, ending: str) -> None:
    for number in range(3):
        _write_json(pa.table({"v": [number]}), tmp_path / f"{number}{ending}")
    session.register_json("t", tmp_path)
    assert assert_distributed_like_single_node(session.table("t")).num_rows == 3
    assert session.read_json(tmp_path / f"1{ending}").to_pylist() == [{"v": 1}]


@pytest.mark.runners("local", reason=SAID)
def test_endings_tell_the_compression(session: Session, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.jsonl.gz").write_bytes(gzip.compress(f'{{"v": {number}}}\n'.encode()))
        (tmp_path / f"{number}.csv.gz").write_bytes(gzip.compress(f"v\n{number}\n".encode()))
    for frame in (session.read_json(tmp_path), session.read_csv(tmp_path), session.read_csv([tmp_path / "0.csv.gz"])):
        assert "compression" in (frame.distribution().reason or "")
    assert sorted(session.read_json(tmp_path).collect().column("v").to_pylist()) == [0, 1, 2]
    session.register_csv("t", tmp_path)
    assert session.table("t").collect().num_rows == 3


@pytest.mark.runners("local", reason=SAID)
def test_several_endings_of_one_format(session: Session, tmp_path: Path) -> None:
    for number, ending in enumerate((".json", ".jsonl", ".ndjson")):
        _write_json(pa.table({"v": [number]}), tmp_path / f"{number}{ending}")
    assert sorted(session.read_json(tmp_path).collect().column("v").to_pylist()) == [0, 1, 2]


@pytest.mark.parametrize("distributed", [True, False], ids=["distributed", "single-node"])
def test_files_that_come_later_are_seen(session: Session, tmp_path: Path, distributed: bool) -> None:
    session.config["sparkfusion.enabled"] = distributed
    pq.write_table(pa.table({"v": [0]}), tmp_path / "0.parquet")
    session.register_parquet("t", tmp_path)
    for number in range(1, 4):
        assert session.sql("select count(*) as n from t where v >= 0").to_pylist() == [{"n": number}]
        assert session.sql("select v from t").to_datafusion().to_arrow_table().num_rows == number
        pq.write_table(pa.table({"v": [number]}), tmp_path / f"{number}.parquet")
    session.sql(f"copy (select 9 as v) to '{tmp_path}/9.parquet'").collect()
    assert session.sql("select v from t").to_datafusion().to_arrow_table().num_rows == 5


@pytest.mark.runners("local", reason=SAID)
@pytest.mark.parametrize("names", [("a.csv", "b.csv.gz"), ("a.csv.bz2", "b.csv.gz")], ids=" ".join)
def test_files_of_one_table_with_several_compressions_are_refused(
    session: Session, tmp_path: Path, names: tuple[str, ...]
) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"v\n1\n")
    for read in (session.read_csv, partial(session.register_csv, "t")):
        with pytest.raises(UserError, match=re.escape(names[0].removeprefix("a")) + r".*\.csv\.gz"):
            read(tmp_path)


@pytest.mark.runners("local", reason=SAID)
def test_several_endings_beside_other_files_are_refused(session: Session, tmp_path: Path) -> None:
    """One of them would be left out."""
    for name in ("a.json", "b.jsonl"):
        _write_json(pa.table({"v": [1]}), tmp_path / name)
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(UserError, match=r"'\.json', '\.jsonl'"):
        session.read_json(tmp_path)


@pytest.mark.runners("local", reason=SAID)
def test_a_damaged_file_of_several_is_named(session: Session, tmp_path: Path) -> None:
    for number in range(3):
        pq.write_table(pa.table({"v": [number]}), tmp_path / f"{number}.parquet")
    damaged = tmp_path / "1.parquet"
    damaged.write_bytes(b"no rows" * 30)
    external = f"create external table e stored as parquet location '{tmp_path}'"
    for read in (session.read_parquet, partial(session.register_parquet, "t"), lambda _: session.sql(external)):
        with pytest.raises(UserError, match=re.escape(str(damaged))):
            read(tmp_path)


@pytest.mark.parametrize("distributed", [True, False], ids=["distributed", "single-node"])
@pytest.mark.parametrize("kind", ["directory", "file", "pattern", "external", "partitions", "url", "external url"])
def test_a_table_whose_files_are_gone_is_refused(
    session: Session, tmp_path: Path, kind: str, distributed: bool
) -> None:
    """DataFusion would answer with no rows."""
    session.config["sparkfusion.enabled"] = distributed
    home = tmp_path / "all of" / "t"
    (home / "p=1").mkdir(parents=True)
    pq.write_table(pa.table({"v": [1]}), home / ("p=1/0.parquet" if kind == "partitions" else "0.parquet"))
    url = f"{home.as_uri()}/"
    if kind.startswith("external"):
        session.sql(f"create external table t stored as parquet location '{url if 'url' in kind else home}'")
    else:
        paths = {"file": home / "0.parquet", "pattern": f"{home}/*.parquet", "url": url}
        session.register_parquet("t", paths.get(kind, home))
    query = session.sql("select sum(v) as v from t")
    assert query.to_pylist() == [{"v": 1}]
    shutil.rmtree(home)
    with pytest.raises(UserError, match=r"the files of table 't' are gone: .*/t"):
        query.collect()
    session.deregister_table("t")
    session.from_pydict({"v": [2]}, "t")
    assert session.sql("select sum(v) as v from t").to_pylist() == [{"v": 2}]


@pytest.mark.runners("local", reason=SAID)
def test_a_table_whose_directory_was_never_there_is_empty(session: Session, tmp_path: Path) -> None:
    """It is made to be written."""
    session.sql(f"create external table t (v bigint) stored as parquet location '{tmp_path}/later/'")
    assert session.sql("select count(*) as n from t").to_pylist() == [{"n": 0}]
    session.sql("insert into t values (1)")
    assert session.sql("select count(*) as n from t").to_pylist() == [{"n": 1}]


@pytest.mark.runners("local", reason="rows are named before tasks get them")
@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.5, None, 2.0], pa.float64()),
        pa.array([1.5, None, 2.0], pa.float32()),
        pa.array([date(2020, 1, 2), None, date(1960, 3, 4)], pa.date64()),
        pa.array([True, None, False]),
    ],
    ids=lambda values: str(values.type),
)
def test_nulls_of_a_partition_column_are_written_as_null(session: Session, tmp_path: Path, values: pa.Array) -> None:
    session.from_arrow(pa.table({"id": range(3), "p": values})).write_parquet(tmp_path / "t", partition_by=["p"])
    rows = session.read_parquet(tmp_path / "t").sort("id").to_pylist()
    assert [row["p"] is None for row in rows] == [False, True, False]
    session.from_arrow(pa.table({"id": [0, 2], "p": values.drop_null()}), "given")
    session.context.sql(f"copy given to '{tmp_path}/like/' stored as parquet partitioned by (p)").collect()
    names = {path.name for path in (tmp_path / "like").iterdir()}
    assert {path.name for path in (tmp_path / "t").iterdir()} == names | {f"p={NULL}"}, "named otherwise by DataFusion"


@pytest.mark.parametrize("made", ["external", "given"])
def test_null_partitions_that_come_later_are_null(session: Session, tmp_path: Path, made: str) -> None:
    (tmp_path / "p=a").mkdir()
    pq.write_table(pa.table({"v": [1]}), tmp_path / "p=a" / "0.parquet")
    if made == "external":
        session.sql(f"create external table t stored as parquet partitioned by (p) location '{tmp_path}/'")
    else:
        session.register_parquet("t", tmp_path, table_partition_cols=[("p", pa.string())])
    session.from_pydict({"v": [2], "p": pa.array([None], pa.string())}, "later").write_table("t")
    query = "select v, p is null as n from {} order by v"
    wanted = [{"v": 1, "n": False}, {"v": 2, "n": True}]
    assert session.sql(query.format("t")).to_pylist() == wanted
    assert session.table("t").filter("p is null").count() == 1
    session.from_pydict({"v": [3], "p": ["b"]}, "more").write_table("t")
    session.sql("create table copied as select v, p from t where v < 3")
    assert session.sql(query.format("copied")).to_pylist() == wanted
    assert session.sql("select count(*) as n, count(p) as p from t").to_pylist() == [{"n": 3, "p": 2}]


def test_comments_between_the_words_of_a_statement_change_nothing(session: Session, tmp_path: Path) -> None:
    home, out = tmp_path / "t", tmp_path / "out"
    home.mkdir()
    session.sql(
        "create external table t (v bigint, p varchar) stored /* one */ as parquet "
        f"partitioned /* by one */ by (p) location '{home}/'"
    )
    session.sql("insert into t values (1, 'a')")
    (home / f"p={NULL}").mkdir()
    pq.write_table(pa.table({"v": [2]}), home / f"p={NULL}" / "0.parquet")
    session.sql("insert /* more */ into /* it */ t values (3, 'c')")
    expected = [{"v": 1, "p": "a"}, {"v": 2, "p": None}, {"v": 3, "p": "c"}]
    session.sql("create /* a copy */ table m as select v, p from t")
    assert session.sql("select v, p from m order by v").to_pylist() == expected
    for _ in range(2):
        session.sql(
            f"copy m to /* here */ '{out}/' stored as parquet options /* ! */ (sparkfusion.mode overwrite -- )\n)"
        )
    assert session.read_parquet(str(out)).sort("v").to_pylist() == expected
