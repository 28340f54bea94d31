"""Writing: one file or a directory, partitioned or ordered; what was written reads back."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from datafusion.dataframe import DataFrameWriteOptions, ParquetWriterOptions

from sparkfusion import DataFrame, Session, SparkfusionError, UserError
from sparkfusion.session.write_modes import WriteMode
from tests.behaviour.parts import TOTAL, assert_usable, names_of, record, rows_of


@pytest.fixture
def frame(session: Session) -> DataFrame:
    return session.sql("select k, v from t where v >= 0")


def _read(path: Path, suffix: str) -> pa.Table:
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    read = {".parquet": pq.read_table, ".csv": pyarrow.csv.read_csv, ".json": _read_json}[suffix]
    return pa.concat_tables(read(file) for file in files if file.is_file())


def _read_json(path: Path) -> pa.Table:
    return pa.Table.from_pylist([json.loads(line) for line in path.read_text().splitlines()])


def _write(frame: DataFrame, path: Path, suffix: str, **options: object) -> int:
    if suffix == ".csv":
        options["with_header"] = True
    written: int = getattr(frame, f"write_{suffix[1:]}")(path, **options)
    return written


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json"])
def test_single_file(frame: DataFrame, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"it's ü %41{suffix}"
    assert _write(frame, path, suffix) == TOTAL
    assert path.is_file()
    assert rows_of(_read(path, suffix)) == rows_of(frame.collect())


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json"])
def test_directory(frame: DataFrame, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "out"
    assert _write(frame, path, suffix) == TOTAL
    assert path.is_dir()
    assert rows_of(_read(path, suffix)) == rows_of(frame.collect())


def test_a_second_write_adds_to_a_directory_and_replaces_a_file(frame: DataFrame, tmp_path: Path) -> None:
    directory, file = tmp_path / "out", tmp_path / "out.parquet"
    for _ in range(2):
        frame.write_parquet(directory)
        frame.write_parquet(file)
    assert (_read(directory, ".parquet").num_rows, _read(file, ".parquet").num_rows) == (2 * TOTAL, TOTAL)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json"])
def test_partitioned_by_a_column(session: Session, tmp_path: Path, suffix: str) -> None:
    frame = session.sql("select k, v from t")
    assert _write(frame, tmp_path / "out", suffix, partition_by=["k"]) == TOTAL
    assert len([path for path in (tmp_path / "out").iterdir() if path.is_dir()]) == 7
    values = _read(tmp_path / "out", suffix)["v"].to_pylist()
    assert sorted(values) == list(range(TOTAL))


@pytest.mark.parametrize(
    "column",
    [
        "nullif(k, 1)",
        "nullif(k = 1, true)",
        "nullif(cast(k as varchar), '1')",
        "nullif(date '2024-01-01', date '2024-01-01')",
    ],
)
def test_null_of_a_partition_column_stays_null(session: Session, tmp_path: Path, column: str) -> None:
    source = session.sql(f"select v, {column} as p from t where v >= 0")
    assert source.write_parquet(tmp_path / "out", partition_by="p") == TOTAL
    back = session.read_parquet(tmp_path / "out").filter("p is null").count()
    assert back == source.filter("p is null").count() > 0


@pytest.mark.parametrize("column", ["K upper", "it's"])
def test_a_partition_column_that_copy_cannot_name_is_refused(session: Session, tmp_path: Path, column: str) -> None:
    frame = session.sql(f'select k as "{column}", v from t')
    with pytest.raises(UserError, match="cannot partition by"):
        frame.write_parquet(tmp_path / "out", partition_by=[column])
    assert not (tmp_path / "out").exists()


def test_partitioning_by_every_column_is_refused(frame: DataFrame, tmp_path: Path) -> None:
    for suffix in (".parquet", ".csv", ".json"):
        with pytest.raises(UserError, match="cannot partition by k, v: all columns are partition columns") as caught:
            _write(frame, tmp_path / "out", suffix, partition_by=["k", "v"])
        assert "another column" in (caught.value.hint or "")
    assert not (tmp_path / "out").exists()


def test_partition_column_that_does_not_exist(frame: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing") as caught:
        frame.write_csv(tmp_path / "out", partition_by=["nothing"])
    assert "sparkfusion_write" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".json"])
def test_order_is_kept(session: Session, tmp_path: Path, suffix: str) -> None:
    ordered = session.sql("select v from t order by v desc")
    _write(ordered, tmp_path / f"out{suffix}", suffix)
    assert _read(tmp_path / f"out{suffix}", suffix)["v"].to_pylist() == list(range(TOTAL - 1, -1, -1))


def test_the_query_below_a_write_is_distributed(session: Session, tmp_path: Path) -> None:
    events = record(session)
    session.sql("select k, sum(v) as s from t group by k").write_parquet(tmp_path / "out.parquet")
    assert "TaskStarted" in names_of(events)


@pytest.mark.parametrize("compression", ["uncompressed", "snappy", "gzip", "brotli", "lz4_raw", "zstd"])
def test_parquet_compression(frame: DataFrame, tmp_path: Path, compression: str) -> None:
    frame.write_parquet(tmp_path / "out.parquet", compression=compression)
    found = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0).column(0).compression
    assert found.lower() == compression.removesuffix("_raw")


def test_parquet_compression_level_and_unknown_compression(frame: DataFrame, tmp_path: Path) -> None:
    assert frame.write_parquet(tmp_path / "out.parquet", "zstd", 9) == TOTAL
    with pytest.raises(UserError, match="nope"):
        frame.write_parquet(tmp_path / "other.parquet", "nope")


def test_options_of_datafusion(frame: DataFrame, tmp_path: Path) -> None:
    options = DataFrameWriteOptions(single_file_output=True)
    assert frame.write_csv(tmp_path / "out", with_header=True, write_options=options) == TOTAL
    assert (tmp_path / "out").is_file()
    assert frame.write_parquet(tmp_path / "x.parquet", ParquetWriterOptions(max_row_group_size=500)) == TOTAL
    assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups >= 8


def test_no_rows(session: Session, tmp_path: Path) -> None:
    assert session.sql("select k, v from t where v < 0").write_parquet(tmp_path / "out.parquet") == 0
    assert pq.read_table(tmp_path / "out.parquet").column_names == ["k", "v"]


@pytest.mark.parametrize("condition", ["v < 0", "false"], ids=["distributed", "single node"])
@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_no_rows_in_a_directory(session: Session, tmp_path: Path, condition: str, mode: WriteMode) -> None:
    nothing = session.sql(f"select k, v from t where {condition}")
    for suffix in (".parquet", ".csv", ".json"):
        assert _write(nothing, tmp_path / suffix[1:], suffix, mode=mode) == 0
        assert [file.suffix for file in (tmp_path / suffix[1:]).iterdir()] == [suffix]
    (file,) = (tmp_path / "parquet").iterdir()
    assert pq.read_table(file).schema.names == ["k", "v"]
    assert nothing.write_parquet(tmp_path / "by_k", partition_by="k", mode=mode) == 0
    assert list((tmp_path / "by_k").iterdir()) == []


def test_a_write_leaves_nothing_in_the_catalog(session: Session, frame: DataFrame, tmp_path: Path) -> None:
    before = rows_of(session.sql("show tables").collect())
    frame.write_parquet(tmp_path / "out.parquet")
    assert rows_of(session.sql("show tables").collect()) == before


def test_failed_write_leaves_no_file(session: Session, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Divide by zero"):
        session.sql("select v / (v - 3500) as q from t").write_parquet(tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()
    assert_usable(session)


def test_place_that_cannot_be_written(session: Session, frame: DataFrame) -> None:
    with pytest.raises(SparkfusionError, match="/proc/nowhere"):
        frame.write_parquet("/proc/nowhere/out.parquet")
    assert_usable(session)


def test_copy_statement(session: Session, tmp_path: Path) -> None:
    copied = session.sql(f"copy (select k, v from t order by v) to '{tmp_path}/out.csv' stored as csv")
    assert copied.to_pylist() == [{"count": TOTAL}]
    assert len((tmp_path / "out.csv").read_text().splitlines()) >= TOTAL
