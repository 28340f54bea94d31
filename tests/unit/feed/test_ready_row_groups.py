"""Row groups as units: every row once, whatever the grouping; footers are read late and only where it pays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sparkfusion
from sparkfusion import FeedContext, FileUnit, Session, UserError
from sparkfusion.feed.provider import ScanRequest
from sparkfusion.feed.ready.row_groups import ranges
from sparkfusion.feeds import Files, Items, RowGroups
from tests.suites.fake_s3 import FakeS3, fake_s3
from tests.unit.feed.test_ready_files import system


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of several habits: with and without dictionaries, statistics, compression; small and large groups."""
    directory, start = tmp_path_factory.mktemp("data"), 0
    habits: list[tuple[int, int, dict[str, Any]]] = [
        (1000, 10, {}),
        (1000, 137, {"use_dictionary": False}),
        (3000, 1000, {"compression": "none", "write_statistics": False}),
        (500, 500, {"use_dictionary": ["s"]}),
        (1, 1, {}),
        (2000, 64, {"use_dictionary": ["v"], "compression": "zstd", "data_page_version": "2.0"}),
        (700, 7, {"store_schema": False, "write_page_index": True}),
    ]
    for number, (rows, group, options) in enumerate(habits):
        values = range(start, start + rows)
        table = pa.table({"v": pa.array(values, pa.int64()), "s": [f"some text {value % 13}" for value in values]})
        part = directory / f"part={number % 2}"
        part.mkdir(exist_ok=True)
        pq.write_table(table, part / f"{number}.parquet", row_group_size=group, **options)
        start += rows
    return directory


def context() -> FeedContext:
    return FeedContext("q", "t", ScanRequest(()), tasks=1)


@pytest.fixture
def session() -> Iterator[Session]:
    with sparkfusion.connect() as opened:
        yield opened


@pytest.mark.parametrize("target", [1, 500, 1777, 4096, 20_000, 10**9])
def test_every_row_comes_once(session: Session, data: Path, target: int) -> None:
    provider = RowGroups(data, target_bytes=target)
    session.register_feed("t", provider)
    session.register_parquet("plain", str(data), table_partition_cols=[("part", pa.int64())])
    query = "select part, count(*) as c, count(distinct v) as d, sum(v) as v, min(s) as s from {} group by 1 order by 1"
    assert session.sql(query.format("t")).to_pylist() == session.sql(query.format("plain")).to_pylist()
    units = list(provider.feed(None, context()))
    assert len(units) >= 7
    assert len(units) == 7 or target < 10**9


def test_each_unit_has_the_row_groups_that_it_should(session: Session, data: Path) -> None:
    """DataFusion and the ranges agree where a row group begins: one group a unit gives the rows of that group."""
    path = data / "part=0" / "0.parquet"
    units = list(RowGroups(path, target_bytes=1).feed(None, context()))
    assert len(units) == 100
    for at in (0, 1, 57, 99):
        session.register_feed("one", Items([units[at]], format="parquet", schema=pq.read_schema(path)))
        found = session.sql("select count(*) as c, min(v) as least, max(v) as greatest from one").to_pylist()
        assert found == [{"c": 10, "least": at * 10, "greatest": at * 10 + 9}]
        session.deregister_table("one")


def test_small_groups_are_put_together_and_large_ones_stay_whole(data: Path) -> None:
    path = data / "part=0" / "2.parquet"
    metadata = pq.ParquetFile(path).metadata
    assert metadata.num_row_groups == 3
    size = path.stat().st_size
    for target, expected in [(size * 3 // 4, 2), (1, 3), (size, 1)]:
        units = list(RowGroups(path, target_bytes=target).feed(None, context()))
        assert len(units) == expected, target
    assert units == [FileUnit(str(path), size)]


@pytest.mark.parametrize(
    ("starts", "size", "target", "found"),
    [
        ([], 12, 5, [(0, 12)]),
        ([4], 100, 5, [(0, 100)]),
        ([4, 50], 100, 5, [(0, 50), (50, 100)]),
        ([4, 4, 50], 100, 5, [(0, 50), (50, 100)]),
        ([50, 4, 90], 100, 60, [(0, 50), (50, 100)]),
        ([4, 10, 20, 30], 40, 20, [(0, 20), (20, 40)]),
    ],
)
def test_ranges_cover_the_file(starts: list[int], size: int, target: int, found: list[tuple[int, int]]) -> None:
    assert ranges(starts, size, target) == found


def test_footers_are_read_when_units_are_wanted(data: Path) -> None:
    told = context()
    units = RowGroups(data, target_bytes=500, order="name").feed(None, told)
    for _ in range(3):
        next(units)
    assert told.metrics["footers"] == 1
    told.stop()
    assert len(list(units)) < 300
    assert told.metrics["footers"] == 1


def test_it_takes_the_arguments_of_files_and_other_feeds(session: Session, data: Path) -> None:
    session.register_feed(
        "t", RowGroups(data / "part=*" / "[01].parquet", target_bytes=900, hive=[("part", pa.int8())])
    )
    session.register_feed("u", RowGroups(Files(data, hive=False), target_bytes=900))
    paths = [str(path) for path in sorted(data.rglob("*.parquet"))]
    schema = pa.schema([("v", pa.int64())])
    session.register_feed("w", RowGroups(Items(paths, format="parquet", schema=schema), target_bytes=900))
    assert session.sql("select part, count(*) as c from t group by 1 order by 1").to_pylist() == [
        {"part": 0, "c": 1000},
        {"part": 1, "c": 1000},
    ]
    for name in ("u", "w"):
        assert session.sql(f"select count(*) as c, count(distinct v) as d from {name}").to_pylist() == [
            {"c": 8201, "d": 8201}
        ]


def test_pruning_by_directory_stays(session: Session, data: Path) -> None:
    seen: list[dict[str, float]] = []

    class Watched(RowGroups):
        def feed(self, partition: int | None, context: FeedContext) -> Iterator[Any]:
            yield from super().feed(partition, context)
            seen.append(context.metrics)

    session.register_feed("t", Watched(data, target_bytes=500))
    assert session.sql("select count(*) as c from t where part = 1").to_pylist() == [{"c": 3500}]
    assert (seen[0]["directories"], seen[0]["pruned"]) == (2, 1)


def test_files_of_an_object_store(session: Session) -> None:
    with fake_s3() as s3:
        _put(s3, "data/a.parquet", 1000)
        session.register_object_store("s3://", s3.store_maker(), "bucket")
        session.register_feed("t", RowGroups("s3://bucket/data", target_bytes=900, filesystem=system(s3)))
        assert session.sql("select count(*) as c, sum(v) as v from t").to_pylist() == [{"c": 1000, "v": 499_500}]


def _put(s3: FakeS3, path: str, rows: int) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"v": list(range(rows))}), sink, row_group_size=50)
    s3.objects[f"bucket/{path}"] = sink.getvalue().to_pybytes()


def test_what_has_no_row_groups_is_refused(session: Session, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("v\n1\n")
    with pytest.raises(UserError, match="not a feed of Parquet files"):
        RowGroups(Files(tmp_path))
    with pytest.raises(UserError, match="target_bytes must be at least 1"):
        RowGroups(tmp_path, target_bytes=0)
    (tmp_path / "bad.parquet").write_bytes(b"no footer at all")
    session.register_feed(
        "t", RowGroups(tmp_path / "bad.parquet", schema=pa.schema([("v", pa.int64())]), target_bytes=1)
    )
    with pytest.raises(UserError, match=r"cannot read the footer of '.*bad\.parquet'"):
        session.sql("select v from t").collect()
