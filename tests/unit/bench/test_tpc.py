"""The suites: which queries there are, when tables are generated, and what is said if a package is missing."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sparkfusion import UserError
from sparkfusion.bench import tpc
from sparkfusion.bench.tpc import TPCDS, TPCH
from sparkfusion.errors import ExternalError


def test_queries_are_chosen_by_numbers() -> None:
    assert [number for number, _ in TPCH.choose()] == list(range(1, 23))
    assert [number for number, _ in TPCH.choose("6, 1")] == [6, 1]


@pytest.mark.parametrize("numbers", ["23", "1,x", "0", "1,,2"])
def test_a_query_that_is_not_there_is_refused(numbers: str) -> None:
    with pytest.raises(UserError, match=r"TPC-H has no query .*\n.*1 to 22"):
        TPCH.choose(numbers)


def test_tables_are_generated_once(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "tpch-0.001.part" / "half").mkdir(parents=True)  # of a run that was killed
    first = TPCH.prepare(0.001, tmp_path, said.append)
    made = sorted(first.rglob("*.parquet"))
    assert TPCH.prepare(0.001, tmp_path, said.append) == first
    assert len(said) == 1
    assert sorted(first.rglob("*.parquet")) == made
    assert sorted(tmp_path.iterdir()) == [first]
    assert TPCH.tables(first) == [
        "customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"
    ]  # fmt: skip


@pytest.mark.parametrize(("suite", "files"), [(TPCH, 1), (TPCH, 3), (TPCDS, 1), (TPCDS, 3)])
def test_decimals_are_integers_in_the_files(suite: tpc.Suite, files: int, tmp_path: Path) -> None:
    """As the generator, Spark and DuckDB write them: decimals in byte arrays take longer to decode."""
    suite.generate(tmp_path, 0.01, files=files)
    physical = {
        column.physical_type
        for path in tmp_path.rglob("*.parquet")
        for column in pq.ParquetFile(path).schema
        if column.logical_type.type == "DECIMAL"
    }
    assert physical == {"INT64"} if suite is TPCH else physical <= {"INT32", "INT64"} and physical


def test_one_file_for_each_table_is_as_the_generator_wrote_it(tmp_path: Path) -> None:
    """Written again, it would have row groups of a million rows."""
    TPCH.generate(tmp_path, 0.05, files=1)
    (path,) = (tmp_path / "lineitem").iterdir()
    assert pq.ParquetFile(path).metadata.created_by.startswith("parquet-rs")


def test_a_generator_that_fails_is_told_with_its_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ExternalError, match=r"TPC-H at scale factor 0\.001 could not be generated"):
        TPCH.generate(tmp_path / "file", 0.001)


def test_a_missing_generator_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(UserError, match=r"tpcgen-cli, which is not installed\n.*pip install 'sparkfusion\[bench\]'"):
        TPCH.generate(tmp_path / "new", 0.001)


@pytest.mark.parametrize("module", ["duckdb", "duckdb_extension_tpch"])
def test_missing_query_texts_name_the_command_that_installs_them(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    tpc._query_texts.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=rf"needs {module}, .*\n.*pip install 'sparkfusion\[bench\]'"):
        TPCH.queries()


def test_an_extension_for_another_duckdb_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    tpc._query_texts.cache_clear()
    monkeypatch.setattr(duckdb, "__version__", "1.0.0")
    with pytest.raises(UserError, match=r"does not match DuckDB 1\.0\.0\n.*duckdb-extension-tpch==1\.0\.0"):
        TPCH.queries()
