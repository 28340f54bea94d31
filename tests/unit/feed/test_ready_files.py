"""Files as a feed: what is found, in which order, what is not even listed, and what is refused."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import sparkfusion
from sparkfusion import FeedContext, FileUnit, Session, UserError
from sparkfusion.feed.provider import ScanRequest
from sparkfusion.feeds import Files, Items
from tests.suites.fake_s3 import KEY, SECRET, FakeS3, fake_s3

INT = pa.int64()


@pytest.fixture
def session() -> Iterator[Session]:
    with sparkfusion.connect() as opened:
        yield opened


def put(path: Path, *values: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"v": pa.array(values, INT), "s": [f"s{value}" for value in values]}), path)
    return path


def context(keeps: Callable[[Sequence[Any]], list[bool]] | None = None) -> FeedContext:
    request = ScanRequest(()) if keeps is None else ScanRequest((), keeps=keeps)
    return FeedContext("q", "t", request, tasks=1)


def listed(files: Files, base: Path) -> list[str]:
    return [str(Path(unit.path).relative_to(base)) for unit in files.feed(None, context())]


def values(session: Session, query: str = "select v from t order by v") -> list[Any]:
    return [next(iter(row.values())) for row in session.sql(query).to_pylist()]


def test_a_directory_gives_what_register_parquet_gives(session: Session, tmp_path: Path) -> None:
    for number in range(7):
        put(tmp_path / "data" / f"{number}.parquet", *range(number * 10, number * 10 + 10))
    session.register_parquet("plain", str(tmp_path / "data"))
    session.register_feed("t", Files(tmp_path / "data"))
    query = "select s, count(*) as c, sum(v) as v from {} where v > 15 group by s order by s"
    assert session.sql(query.format("t")).to_pylist() == session.sql(query.format("plain")).to_pylist()


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*.parquet", ["a.parquet", "b1.parquet"]),
        ("b?.parquet", ["b1.parquet"]),
        ("[!a]*.parquet", ["b1.parquet"]),
        ("**/*.parquet", ["a.parquet", "b1.parquet", "x/c.parquet", "x/y/d.parquet"]),
        ("**", ["a.parquet", "b1.parquet", "x/c.parquet", "x/y/d.parquet"]),
        ("*/*.parquet", ["x/c.parquet"]),
        ("x/**/d.parquet", ["x/y/d.parquet"]),
        ("*", ["a.parquet", "b1.parquet", "x/c.parquet", "x/y/d.parquet"]),
        ("_hidden/*", ["_hidden/e.parquet"]),
        ("_h*/*", ["_hidden/e.parquet"]),
        ("", ["a.parquet", "b1.parquet", "x/c.parquet", "x/y/d.parquet"]),
        ("x/c.parquet", ["x/c.parquet"]),
    ],
)
def test_globs(tmp_path: Path, glob: str, found: list[str]) -> None:
    for name in ["a", "b1", "x/c", "x/y/d", "_hidden/e", "x/.f", "x/_g"]:
        put(tmp_path / f"{name}.parquet", 1)
    (tmp_path / "x" / "empty.parquet").touch()
    assert sorted(listed(Files(tmp_path / glob if glob else tmp_path), tmp_path)) == found


def test_directories_are_taken_alone_if_that_is_wanted(tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", 1)
    put(tmp_path / "x" / "b.parquet", 2)
    assert listed(Files(tmp_path, recursive=False), tmp_path) == ["a.parquet"]


def test_other_files_of_a_directory_are_left_alone_unless_a_glob_names_them(session: Session, tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", 1)
    put(tmp_path / "part-0", 2)
    (tmp_path / "README.md").write_text("hello")
    session.register_feed("t", Files(tmp_path))
    session.register_feed("named", Files(tmp_path / "part-*", format="parquet"))
    assert values(session) == [1]
    assert values(session, "select v from named") == [2]


def test_a_name_that_looks_like_a_glob_is_a_name_if_there_is_such_a_file(session: Session, tmp_path: Path) -> None:
    put(tmp_path / "d[1]" / "a b%20=é#.parquet", 5)
    session.register_feed("t", Files(tmp_path / "d[1]"))
    assert values(session) == [5]


def test_relative_paths_and_lists(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a.parquet", 1)
    put(tmp_path / "b" / "b.parquet", 2)
    monkeypatch.chdir(tmp_path)
    session.register_feed("t", Files(["a.parquet", Path("b"), f"file://{tmp_path}/b/*"]))
    monkeypatch.chdir("/")
    assert values(session) == [1, 2, 2]


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ("name", ["a/1", "a/2", "b/3"]),
        ("newest", ["a/2", "b/3", "a/1"]),
        ("oldest", ["a/1", "b/3", "a/2"]),
        ("largest", ["b/3", "a/2", "a/1"]),
        (lambda file: (-len(file.path), file.modified), ["a/1", "b/3", "a/2"]),
    ],
)
def test_order(tmp_path: Path, order: Any, found: list[str]) -> None:
    for name, size, modified in [("a/1", 10, 100), ("a/2", 1000, 300), ("b/3", 10_000, 200)]:
        put(tmp_path / f"{name}.parquet", *range(size))
        os.utime(tmp_path / f"{name}.parquet", (modified, modified))
    assert listed(Files(tmp_path, order=order), tmp_path) == [f"{name}.parquet" for name in found]


@pytest.mark.parametrize("direction", ["ascending", "descending"])
def test_directories_in_the_order_of_their_values_while_the_listing_goes_on(tmp_path: Path, direction: Any) -> None:
    days = ["month=9/day=30", "month=10/day=2", "month=10/day=11"]
    for day in days:
        put(tmp_path / day / "0.parquet", 1)
    files, told = Files(tmp_path, directory_order=direction), context()
    units = iter(files.feed(None, told))
    first = next(units).path
    before = told.metrics["directories"]
    found = [first, *(unit.path for unit in units)]
    wanted = days if direction == "ascending" else days[::-1]
    assert found == [str(tmp_path / day / "0.parquet") for day in wanted]
    assert (before, told.metrics["directories"]) == (3, 6)


def test_units_come_while_the_listing_goes_on_and_it_stops_when_it_is_told(tmp_path: Path) -> None:
    for number in range(50):
        put(tmp_path / f"d{number}" / "0.parquet", number)
    told = context()
    units = iter(Files(tmp_path, schema=pa.schema([("v", INT)]), format="parquet").feed(None, told))
    next(units)
    assert told.metrics["directories"] == 2
    told.stop()
    assert list(units) == []
    assert told.metrics["directories"] == 2


def test_a_limit_ends_the_listing(session: Session, tmp_path: Path) -> None:
    for number in range(300):
        put(tmp_path / f"d{number:03}" / "0.parquet", number)
    session.config["sparkfusion.feed_units_ahead"] = 2
    seen, closed = [0.0], threading.Event()

    class Watched(Files):
        def feed(self, partition: int | None, context: FeedContext) -> Iterator[Any]:
            try:
                yield from super().feed(partition, context)
            finally:
                seen[0] = context.metrics["directories"]
                closed.set()

    session.register_feed("t", Watched(tmp_path))
    assert session.sql("select v from t limit 3").collect().num_rows == 3
    assert closed.wait(60)
    assert 0 < seen[0] < 301


def test_hive_directories_give_typed_columns_like_register_parquet(session: Session, tmp_path: Path) -> None:
    for year in (2023, 2024):
        for region in ("a%2Fb", "c d", "__HIVE_DEFAULT_PARTITION__"):
            put(tmp_path / f"year={year}" / f"region={region}" / "0.parquet", year, len(region))
    session.register_feed("t", Files(tmp_path))
    columns = [("year", INT), ("region", pa.string())]
    session.register_parquet("plain", str(tmp_path), table_partition_cols=columns)
    assert session.table("t").schema().field("year").type == INT
    query = "select year, region, sum(v) as v from {} group by all order by year, v"  # DataFusion decodes no names
    found = session.sql(query.format("t")).to_pylist()
    assert {row["region"] for row in found} == {"a/b", "c d", None}
    assert [(row["year"], row["v"]) for row in found] == [
        (row["year"], row["v"]) for row in session.sql(query.format("plain")).to_pylist()
    ]


def test_pruned_directories_are_never_listed(session: Session, tmp_path: Path) -> None:
    for day in range(1, 21):
        for hour in range(3):
            put(tmp_path / f"day={day}" / f"hour={hour}" / "0.parquet", day * 100 + hour)
    seen: list[dict[str, float]] = []

    class Watched(Files):
        def feed(self, partition: int | None, context: FeedContext) -> Iterator[Any]:
            yield from super().feed(partition, context)
            seen.append(context.metrics)

    session.register_feed("t", Watched(tmp_path))
    assert values(session, "select v from t where day between 3 and 4 and hour = 2 order by v") == [302, 402]
    assert seen == [{"directories": 1 + 2 + 2, "pruned": 18 + 4}]
    session.register_feed("untyped", Files(tmp_path, hive=[("day", pa.string())]))
    assert values(session, "select v from untyped where day = '07' order by v") == []
    assert values(session, "select v from untyped where day = '7' order by v") == [700, 701, 702]


def test_given_types_win(session: Session, tmp_path: Path) -> None:
    for day in ("2024-01-05", "2024-02-01"):
        put(tmp_path / f"day={day}" / "n=1" / "0.parquet", int(day[6]))
    session.register_feed("t", Files(tmp_path, hive=[("day", pa.date32()), ("n", pa.int8())]))
    session.register_feed("u", Files(tmp_path, schema=pa.schema([("v", INT), ("n", pa.int16())])))
    assert values(session, "select v from t where day > date '2024-01-31'") == [2]
    assert session.table("t").schema().field("n").type == pa.int8()
    assert session.table("u").schema().field("n").type == pa.int16()
    assert session.sql("select * from u where v = 1").to_pylist() == [{"v": 1, "day": "2024-01-05", "n": 1}]


def test_hive_directories_can_be_ignored(session: Session, tmp_path: Path) -> None:
    put(tmp_path / "x=1" / "0.parquet", 1)
    put(tmp_path / "0.parquet", 2)
    session.register_feed("t", Files(tmp_path, hive=False))
    assert session.table("t").schema().names == ["v", "s"]
    assert values(session) == [1, 2]


def test_files_outside_of_the_partitions_are_refused(session: Session, tmp_path: Path) -> None:
    put(tmp_path / "x=1" / "0.parquet", 1)
    files = Files(tmp_path)
    session.register_feed("t", files)
    put(tmp_path / "1.parquet", 2)
    with pytest.raises(UserError, match=r"1\.parquet.*partition columns none; the table has x"):
        values(session)
    put(tmp_path / "x=1" / "y=2" / "0.parquet", 1)
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(UserError, match=r"x, y; the table has x"):
        values(session)


def test_a_partition_value_of_another_type_is_refused(session: Session, tmp_path: Path) -> None:
    put(tmp_path / "x=1" / "0.parquet", 1)
    session.register_feed("t", Files(tmp_path))
    put(tmp_path / "x=one" / "0.parquet", 2)
    with pytest.raises(UserError, match=r"'one' of column 'x' is not a valid int64"):
        values(session)


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [("a.csv", "v,s\n1,x\n2,y\n", "csv"), ("a.jsonl", '{"v": 1, "s": "x"}\n{"v": 2, "s": "y"}\n', "json")],
)
def test_other_formats(session: Session, tmp_path: Path, name: str, text: str, format: str) -> None:
    (tmp_path / name).write_text(text)
    files = Files(tmp_path)
    session.register_feed("t", files)
    assert files.format == format
    assert session.sql("select v, s from t order by v").to_pylist() == [{"v": 1, "s": "x"}, {"v": 2, "s": "y"}]


def test_arrow_files(session: Session, tmp_path: Path) -> None:
    table = pa.table({"v": [1, 2]})
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as writer:
        writer.write_table(table)
    session.register_feed("t", Files(tmp_path / "*.arrow"))
    assert values(session) == [1, 2]


@pytest.mark.parametrize("path", ["a.csv.gz", "*.csv.gz", ""])
def test_compressed_files_are_refused(session: Session, tmp_path: Path, path: str) -> None:
    (tmp_path / "a.csv.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(UserError, match=r"a\.csv\.gz', because the file is compressed"):
        session.register_feed("t", Files(tmp_path / path if path else tmp_path))


def test_a_mixed_directory_needs_a_format(session: Session, tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", 1)
    files = Files(tmp_path)
    session.register_feed("t", files)
    (tmp_path / "b.csv").write_text("v\n1\n")
    with pytest.raises(UserError, match=r"b\.csv' is csv, other files are parquet"):
        values(session)
    session.register_feed("u", Files(tmp_path, format="parquet"))
    assert values(session, "select v from u") == [1]


@pytest.mark.parametrize("path", ["nothing", "nothing/*.parquet", "nothing/a.parquet"])
def test_a_path_that_does_not_exist_is_named(session: Session, tmp_path: Path, path: str) -> None:
    with pytest.raises(UserError, match=f"there is no file or directory '{tmp_path}/nothing"):
        session.register_feed("t", Files(tmp_path / path))
    schema = pa.schema([("v", INT)])
    session.register_feed("u", Files(tmp_path / path, schema=schema, format="parquet", hive=False))
    with pytest.raises(UserError, match=f"feed of table 'u' failed: there is no file or directory '{tmp_path}/noth"):
        session.sql("select v from u").collect()


def test_an_empty_directory_needs_a_schema_and_has_no_rows(session: Session, tmp_path: Path) -> None:
    files = Files(tmp_path)
    with pytest.raises(UserError, match=f"there are no files in {tmp_path}"):
        session.register_feed("t", files)
    session.register_feed("t", Files(tmp_path, schema=pa.schema([("v", INT)]), format="parquet"))
    assert values(session) == []
    put(tmp_path / "a.parquet", 3)
    assert values(session) == [3]
    session.register_feed("later", files)
    assert values(session, "select v from later") == [3]


def test_links_are_followed_unless_they_lead_in_a_circle(tmp_path: Path) -> None:
    put(tmp_path / "a" / "0.parquet", 1)
    put(tmp_path / "b" / "1.parquet", 1)
    (tmp_path / "a" / "b").symlink_to(tmp_path / "b")
    (tmp_path / "a" / "gone.parquet").symlink_to(tmp_path / "nowhere")
    assert listed(Files(tmp_path / "a"), tmp_path) == ["a/0.parquet", "a/b/1.parquet"]
    (tmp_path / "b" / "up").symlink_to(tmp_path / "b")
    with pytest.raises(UserError, match=r"'.*/a/b/up' is a link to a directory above it"):
        listed(Files(tmp_path / "a"), tmp_path)


def test_a_directory_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> Any:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UserError, match=f"Permission denied: '{tmp_path}'"):
        Files(tmp_path).schema()


def test_arguments_are_checked(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown order 'size'"):
        Files(tmp_path, order="size")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="unknown directory order 'up'"):
        Files(tmp_path, directory_order="up")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="no paths"):
        Files([])


def test_a_file_system_of_arrow(session: Session, tmp_path: Path) -> None:
    put(tmp_path / "data" / "x=1" / "a.parquet", 1)
    inner = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    session.register_feed("t", Files("data", filesystem=inner))
    assert session.sql("select x, v from t").to_pylist() == [{"x": 1, "v": 1}]
    with pytest.raises(UserError, match="has no URL"):
        Files("data", filesystem=fs._MockFileSystem())


@pytest.fixture
def s3() -> Iterator[FakeS3]:
    with fake_s3() as server:
        yield server


def system(s3: FakeS3, secret: str = SECRET) -> fs.FileSystem:
    return fs.S3FileSystem(
        access_key=KEY, secret_key=secret, endpoint_override=s3.address, scheme="http", region="us-east-1"
    )


def test_object_stores_are_listed_directory_by_directory(session: Session, s3: FakeS3) -> None:
    for day in range(5):
        for number in range(2):
            s3.put_table(f"data/day={day}/{number}.parquet", pa.table({"v": [day * 10 + number]}))
    s3.put_table("data/_temporary/0.parquet", pa.table({"v": [99]}))
    session.register_object_store("s3://", s3.store_maker(), "bucket")
    session.register_feed("t", Files("s3://bucket/data", filesystem=system(s3)))
    session.register_feed("by_path", Files("bucket/data/day=[34]/1.parquet", filesystem=system(s3)))
    assert values(session) == [day * 10 + number for day in range(5) for number in range(2)]
    assert values(session, "select v from t where day = 3 order by v") == [30, 31]
    assert session.sql("select day, v from by_path order by v").to_pylist() == [
        {"day": 3, "v": 31},
        {"day": 4, "v": 41},
    ]


def test_the_columns_of_csv_in_an_object_store_are_guessed_from_its_first_lines(
    session: Session, s3: FakeS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkfusion.feed.ready.peek._HEAD_BYTES", 11)  # ends within the third line
    s3.objects["bucket/data/a.csv"] = b"v,s\n1,x\n2,yyyyy\n"
    session.register_object_store("s3://", s3.store_maker(), "bucket")
    session.register_feed("t", Files("s3://bucket/data", filesystem=system(s3)))
    assert session.sql("select v, s from t order by v").to_pylist() == [{"v": 1, "s": "x"}, {"v": 2, "s": "yyyyy"}]


def test_a_url_with_everything_in_it_does_not_show_its_secrets(s3: FakeS3) -> None:
    s3.put_table("data/0.parquet", pa.table({"v": [1]}))
    where = f"endpoint_override={s3.address.replace(':', '%3A')}&scheme=http&region=us-east-1"
    user = f"{KEY}:{SECRET.replace('/', '%2F').replace('+', '%2B').replace('=', '%3D')}"
    (unit,) = Files(f"s3://{user}@bucket/data/*.parquet?{where}").feed(None, context())
    assert unit.path == "s3://bucket/data/0.parquet"
    assert unit.size == len(s3.objects["bucket/data/0.parquet"])
    with pytest.raises(UserError, match="s3://bucket/nothing") as caught:
        Files(f"s3://{user}@bucket/nothing?{where}").schema()
    refused = Files(f"s3://{KEY}:wrong-secret@bucket/data?{where}")
    with pytest.raises(sparkfusion.SparkfusionError, match="s3://bucket/data") as other:
        refused.schema()
    for shown in (str(caught.value), str(other.value)):
        assert SECRET not in shown
        assert "wrong-secret" not in shown


@pytest.mark.parametrize("where", ["before the @", "parameters"])
def test_keys_in_a_url_may_be_anywhere_that_the_store_of_frames_takes_them(s3: FakeS3, where: str) -> None:
    """Half of all secrets have a `/`, which people do not always escape."""
    s3.put_table("data/0.parquet", pa.table({"v": [1]}))
    url = s3.url("data/*.parquet")
    if where == "before the @":
        url = f"s3://{KEY}:{SECRET}@{url.removeprefix('s3://').partition('&access_key')[0]}"
    (unit,) = Files(url).feed(None, context())
    assert unit.path == "s3://bucket/data/0.parquet"


def test_names_that_a_url_cannot_carry_are_refused(s3: FakeS3) -> None:
    s3.put_table("data/a#b.parquet", pa.table({"v": [1]}))
    with pytest.raises(UserError, match=r"a#b\.parquet' cannot be read"):
        list(Files("s3://bucket/data", filesystem=system(s3)).feed(None, context()))


def test_a_name_with_marks_of_urls_is_that_object(session: Session, s3: FakeS3) -> None:
    """`a` is another object, of the same size."""
    s3.put_table("a", pa.table({"v": [666]}))
    for name in ("a#b.parquet", "a?b.parquet", "a%20b.parquet"):
        s3.put_table(name, pa.table({"v": [1]}))
        size = len(s3.objects[f"bucket/{name}"])
        unit = FileUnit(f"s3://bucket/{name}", size)
        session.register_object_store("s3://", s3.store_maker(), "bucket")
        session.register_feed("t", Items([unit]), schema=pa.schema([("v", pa.int64())]), format="parquet")
        assert session.sql("select v from t").to_pylist() == [{"v": 1}], name
        session.deregister_table("t")
