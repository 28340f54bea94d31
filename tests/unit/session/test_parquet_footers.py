"""Footers tell whether Spark might read a file in another way, and are read again only when a file has changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion.runner.base import CatalogFile, SparkDates
from sparkfusion.session import parquet_footers
from sparkfusion.session.parquet_footers import Footers, read_footer, why_different

SPARK = {"org.apache.spark.version": "4.0.0"}
TRUSTING = SparkDates(trusts_dates=True, trusts_int96=True)
OTHER_DATES = "the dates of column 'at' may be in another calendar"
DAY = pa.schema([("day", pa.date32())])


def footer(
    path: Path, rows: pa.Table, metadata: dict[str, str] | None = None, **options: object
) -> parquet_footers.Footer:
    """The footer of a file with these rows. Only Arrow leaves its own schema in it."""
    with pq.ParquetWriter(path / "rows.parquet", rows.schema, store_schema=False, **options) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(metadata or {})
    return read_footer(str(path / "rows.parquet"))


@pytest.mark.parametrize(
    ("metadata", "trusts", "why"),
    [
        (SPARK, False, None),
        (None, True, None),
        (None, False, "the dates of column 'day' may be in another calendar"),
        ({"org.apache.spark.version": "2.4.8"}, True, "the dates of column 'day' may be in another calendar"),
        ({"org.apache.spark.version": "odd"}, True, "the dates of column 'day' may be in another calendar"),
        (
            {**SPARK, "org.apache.spark.legacyDateTime": ""},
            True,
            "the dates of column 'day' may be in another calendar",
        ),
    ],
)
def test_the_calendar_of_dates(tmp_path: Path, metadata: dict[str, str] | None, trusts: bool, why: str | None) -> None:
    rows = pa.table({"day": pa.array([1], pa.date32()), "n": [1]})
    found = footer(tmp_path, rows, metadata)
    assert why_different(found, DAY, (), SparkDates(trusts_dates=trusts)) == why
    assert why_different(found, pa.schema([("n", pa.int64())]), (), SparkDates(trusts_dates=trusts)) is None


@pytest.mark.parametrize(
    ("rows", "table", "why"),
    [
        (pa.table({"n": [1]}), {"n": pa.int64(), "new": pa.string()}, None),
        (pa.table({"n": [1], "N": [2]}), {"n": pa.int64()}, "column 'n' is called 'n', 'N' in a file"),
        (pa.table({"n": [1], "P": [2]}), {"n": pa.int64(), "p": pa.int32()}, "partition column 'p' is in a file too"),
        (pa.table({"s": ["x"]}), {"s": pa.large_string()}, None),
        (pa.table({"s": pa.array(["x"], pa.string_view())}), {"s": pa.string()}, None),
        (pa.table({"s": ["x"]}), {"s": pa.binary()}, "column 's' is string in a file, and binary in the catalog"),
        (pa.table({"s": pa.array([1], pa.uint32())}), {"s": pa.int64()}, "column 's' is uint32 in a file"),
        (pa.table({"a": [[1]]}), {"a": pa.list_(pa.field("element", pa.int64()))}, None),
        (pa.table({"a": [[1]]}), {"a": pa.list_(pa.field("element", pa.int32()))}, "column 'a' is list<"),
        (
            pa.table({"t": pa.array([1], pa.timestamp("ns", "UTC"))}),
            {"t": pa.timestamp("us", "Z")},
            "column 't' is timest",
        ),
    ],
)
def test_columns_are_compared_by_name_and_type(
    tmp_path: Path, rows: pa.Table, table: dict[str, pa.DataType], why: str | None
) -> None:
    found = why_different(footer(tmp_path, rows), pa.schema(table), ("p",), TRUSTING)
    assert found == why or (why is not None and found is not None and found.startswith(why))


INSTANT = pa.timestamp("us", "UTC")
INNER = pa.struct([("c", INSTANT), ("n", pa.int64())])
DEEP = pa.struct([("a", INSTANT), ("b", pa.list_(pa.field("element", INNER)))])


@pytest.mark.parametrize(
    ("metadata", "dates", "why"),
    [
        (SPARK, SparkDates(), None),
        (SPARK, SparkDates(why_int96="a setting is on"), "column 'at' has INT96 timestamps, and a setting is on"),
        ({"org.apache.spark.version": "3.0.3"}, TRUSTING, OTHER_DATES),
        ({**SPARK, "org.apache.spark.legacyINT96": ""}, TRUSTING, OTHER_DATES),
        (None, SparkDates(trusts_dates=True), OTHER_DATES),
        (None, SparkDates(trusts_int96=True), None),
    ],
)
def test_int96_timestamps_are_instants_of_a_calendar(
    tmp_path: Path, metadata: dict[str, str] | None, dates: SparkDates, why: str | None
) -> None:
    rows = pa.table({"at": pa.array([1], INSTANT), "deep": pa.array([None], DEEP), "n": [1]})
    found = footer(tmp_path, rows, metadata, use_deprecated_int96_timestamps=True)
    assert found.int96 == ("at", "deep")
    assert why_different(found, rows.schema, (), dates) == why
    assert why_different(found, pa.schema([("n", pa.int64())]), (), dates) is None


def test_int96_timestamps_are_nothing_else(tmp_path: Path) -> None:
    rows = pa.table({"at": pa.array([1], INSTANT), "m": pa.array([[("k", 1)]], pa.map_(pa.string(), INSTANT))})
    found = footer(tmp_path, rows.select(["at"]), use_deprecated_int96_timestamps=True)
    wall = pa.schema([("at", pa.timestamp("us"))])
    assert str(why_different(found, wall, (), TRUSTING)).startswith("column 'at' is timestamp[us, tz=UTC] in a file")
    with_map = footer(tmp_path, rows, use_deprecated_int96_timestamps=True)
    assert str(why_different(with_map, rows.schema, (), TRUSTING)).startswith("column 'at' is timestamp[ns] in a file")
    pq.write_table(rows.select(["at"]), tmp_path / "arrow.parquet", use_deprecated_int96_timestamps=True)
    of_arrow = read_footer(str(tmp_path / "arrow.parquet"))
    assert str(why_different(of_arrow, rows.schema, (), TRUSTING)).startswith("column 'at' is timestamp[ns] in a file")


def test_decimals_in_byte_arrays(tmp_path: Path) -> None:
    rows = pa.table({"d": pa.array([1], pa.decimal128(9, 2))})
    found = footer(tmp_path, rows)
    assert found.decimals_in_bytes == ()
    assert why_different(found, rows.schema, (), TRUSTING) is None
    in_bytes = replace(found, decimals_in_bytes=("d",))
    assert "stored as byte arrays" in str(why_different(in_bytes, rows.schema, (), TRUSTING))


def never(file: CatalogFile, count: int) -> bytes:
    raise AssertionError(f"{file.path} is on this machine")


def test_the_footer_of_a_file_elsewhere_is_read_from_its_end(tmp_path: Path) -> None:
    """Once if it is small, twice if it is large, and again only if the file is another one."""
    asked: list[int] = []

    def read_end(file: CatalogFile, count: int) -> bytes:
        asked.append(count)
        return (tmp_path / Path(file.path).name).read_bytes()[-count:]

    footers = Footers()
    for name, columns, most in (("small", 3, 1), ("large", 1000, 2)):
        table = pa.table({f"column{number}": pa.array(range(60_000 // columns)) for number in range(columns)})
        pq.write_table(table, tmp_path / name)
        size = (tmp_path / name).stat().st_size
        file = CatalogFile(f"s3a://bucket/{name}", size=size, modified=7)
        asked.clear()
        assert footers.read([file], read_end) == [read_footer(str(tmp_path / name))]
        assert len(asked) == most
        footers.read([file], read_end)
        assert len(asked) == most
        assert sum(asked) < size
        footers.read([replace(file, modified=8)], read_end)
        assert len(asked) == 2 * most


def test_a_footer_is_read_again_when_its_file_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def read_and_note(path: str) -> parquet_footers.Footer:
        read.append(path)
        return read_footer(path)

    def look() -> list[parquet_footers.Footer]:
        return footers.read([CatalogFile(path) for path in paths], never)

    monkeypatch.setattr(parquet_footers, "read_footer", read_and_note)
    paths = [str(tmp_path / f"{number}.parquet") for number in range(12)]
    for path in paths:
        pq.write_table(pa.table({"n": [1]}), path)
    footers = Footers()
    assert look() == look()
    assert sorted(read) == sorted(paths)
    Path(paths[3]).unlink()
    pq.write_table(pa.table({"n": ["text"]}), paths[3])
    assert look()[3].schema == pa.schema([("n", pa.string())])
    assert len(read) == len(paths) + 1
