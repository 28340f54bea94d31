"""With DataFusion's options for Parquet, a COPY writes the same bytes as DataFusion's own writer."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import ParquetColumnOptions as Column
from datafusion import ParquetWriterOptions as Options

import sparkfusion
from sparkfusion import Session, UserError
from sparkfusion.observe.events import Event, QueryPlanned
from sparkfusion.session import parquet_options
from sparkfusion.session.parquet_options import copy_options

ONE_COLUMN = Column(
    compression="snappy",
    dictionary_enabled=False,
    encoding="delta_byte_array",
    statistics_enabled="none",
    bloom_filter_enabled=True,
    bloom_filter_fpp=0.1,
    bloom_filter_ndv=7,
)
CASES = {
    "defaults": Options(),
    "compression": Options(compression="snappy"),
    "level": Options(compression="gzip", compression_level=4),
    "no dictionary": Options(dictionary_enabled=False),
    "no statistics": Options(statistics_enabled="none"),
    "row groups": Options(max_row_group_size=100),
    "names": Options(created_by="it's me", writer_version="2.0", skip_arrow_metadata=True),
    "encoding": Options(encoding="plain", dictionary_enabled=False),
    "bloom filters": Options(bloom_filter_on_write=True, bloom_filter_fpp=0.01, bloom_filter_ndv=100),
    "pages": Options(data_pagesize_limit=500, data_page_row_count_limit=50, write_batch_size=10),
    "dictionary pages": Options(dictionary_page_size_limit=10),
    "truncated": Options(column_index_truncate_length=2, statistics_truncate_length=1),
    "one column": Options(column_specific_options={"name": ONE_COLUMN}),
    "parallel": Options(allow_single_file_parallelism=False, maximum_parallel_row_group_writers=2),
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with sparkfusion.connect() as session:
        rows: dict[str, list[Any]] = {
            "n": list(range(1000)),
            "name": [f"name {n % 7}" for n in range(1000)],
            "Odd": [n * 0.5 for n in range(1000)],
        }
        session.from_pydict(rows, name="t")
        yield session


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_the_file_is_the_same(session: Session, tmp_path: Path, options: Options) -> None:
    assert copy_options(options) is not None
    table = session.table("t")
    assert table.write_parquet_with_options(tmp_path / "ours.parquet", options) == 1000
    table.to_datafusion().write_parquet_with_options(tmp_path / "theirs.parquet", options)
    assert (tmp_path / "ours.parquet").read_bytes() == (tmp_path / "theirs.parquet").read_bytes()


@pytest.mark.parametrize(
    "options",
    [Options(compression=None), Options(column_specific_options={"Odd": Column(compression="snappy")})],
    ids=["as the library likes", "upper case"],
)
def test_what_a_copy_cannot_say_is_left_to_datafusion(session: Session, tmp_path: Path, options: Options) -> None:
    assert copy_options(options) is None
    assert session.table("t").write_parquet(tmp_path / "ours.parquet", options) == 1000
    session.table("t").to_datafusion().write_parquet_with_options(tmp_path / "theirs.parquet", options)
    assert (tmp_path / "ours.parquet").read_bytes() == (tmp_path / "theirs.parquet").read_bytes()


def test_tasks_write_with_the_options(tmp_path: Path) -> None:
    rows = {"k": [n % 3 for n in range(900)], "v": list(range(900))}
    for number in range(3):
        pq.write_table(pa.table(rows).slice(number * 300, 300), tmp_path / f"{number}.parquet")
    config = {"sparkfusion.bytes_per_partition": 1, "datafusion.execution.target_partitions": 3}
    with sparkfusion.connect(config=config) as session:
        planned: list[Event] = []
        session.subscribe(planned.append)
        table = session.read_parquet(tmp_path)
        written = table.write_parquet(tmp_path / "out", Options(compression="snappy"), partition_by="k", mode="error")
    assert written == 900
    (query,) = [event for event in planned if isinstance(event, QueryPlanned)]  # it runs once
    assert query.tasks > 0
    files = list((tmp_path / "out").glob("k=*/*.parquet"))
    assert len({file.parent for file in files}) == 3
    assert {pq.ParquetFile(file).metadata.row_group(0).column(0).compression for file in files} == {"SNAPPY"}


def test_every_option_is_passed_on() -> None:
    """Those of a new version of DataFusion, too."""
    known = set(inspect.signature(Options).parameters) - {"compression_level", "column_specific_options"}
    of_column = set(inspect.signature(Column).parameters)
    assert known == set(parquet_options._FILE)
    assert of_column == set(parquet_options._COLUMN)


def test_the_level_belongs_to_the_options(session: Session, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="either compression_level or ParquetWriterOptions, not both"):
        session.table("t").write_parquet(tmp_path / "x.parquet", Options(), 5)
