"""Footers tell whether Spark might read a file in another way, and are read again only when a file has changed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparkfusion.session import parquet_footers
from sparkfusion.session.parquet_footers import Footers, read_footer, why_different

SPARK = {"org.apache.spark.version": "4.0.0"}
DAY = pa.schema([("day", pa.date32())])


def footer(
    path: Path, rows: pa.Table, metadata: dict[str, str] | None = None, **options: object
) -> parquet_footers.Footer:
    pq.write_table(rows.replace_schema_metadata(metadata), path / "rows.parquet", **options)
    return read_footer(str(path / "rows.parquet"))


@pytest.mark.parametrize(
    ("metadata", "trusts", "why"),
    [
        (SPARK, False, None),
        (None, True, None),
        (None, False, "the dates of column 'day' may be of another calendar"),
        ({"org.apache.spark.version": "2.4.8"}, True, "the dates of column 'day' may be of another calendar"),
        ({"org.apache.spark.version": "odd"}, True, "the dates of column 'day' may be of another calendar"),
        (
            {**SPARK, "org.apache.spark.legacyDateTime": ""},
            True,
            "the dates of column 'day' may be of another calendar",
        ),
    ],
)
def test_the_calendar_of_dates(tmp_path: Path, metadata: dict[str, str] | None, trusts: bool, why: str | None) -> None:
    rows = pa.table({"day": pa.array([1], pa.date32()), "n": [1]})
    found = footer(tmp_path, rows, metadata)
    assert why_different(found, DAY, (), trusts_dates=trusts) == why
    assert why_different(found, pa.schema([("n", pa.int64())]), (), trusts_dates=trusts) is None


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
    found = why_different(footer(tmp_path, rows), pa.schema(table), ("p",), trusts_dates=True)
    assert found == why or (why is not None and found is not None and found.startswith(why))


def test_int96_and_decimals_in_byte_arrays(tmp_path: Path) -> None:
    instants = pa.table({"at": pa.array([1], pa.timestamp("us", "UTC"))})
    found = footer(tmp_path, instants, use_deprecated_int96_timestamps=True)
    assert why_different(found, instants.schema, (), trusts_dates=True) == "column 'at' has INT96 timestamps"
    assert found.decimals_in_bytes == ()


def test_a_footer_is_read_again_when_its_file_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def read_and_note(path: str) -> parquet_footers.Footer:
        read.append(path)
        return read_footer(path)

    monkeypatch.setattr(parquet_footers, "read_footer", read_and_note)
    paths = [str(tmp_path / f"{number}.parquet") for number in range(12)]
    for path in paths:
        pq.write_table(pa.table({"n": [1]}), path)
    footers = Footers()
    assert footers.read(paths) == footers.read(paths)
    assert sorted(read) == sorted(paths)
    Path(paths[3]).unlink()
    pq.write_table(pa.table({"n": ["text"]}), paths[3])
    assert footers.read(paths)[3].schema == pa.schema([("n", pa.string())])
    assert len(read) == len(paths) + 1
