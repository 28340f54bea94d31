"""The processes of `make bench-all`'s engines: whatever happens in one, the run goes on and nothing is left."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.all.engines import BASE, BY_NAME
from benchmarks.all.measure import SuiteRun, engine_processes
from benchmarks.all.process import EngineProcess, NotAnsweredError
from benchmarks.all.result import SuiteResult

ENDLESS = "select sum(a.range * b.range) from range(1000000000) a, range(1000000000) b"
QUERY = "select sum(x) as s from t"
LONG = 120.0
"""Seconds that only a test that fails waits."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    directory = tmp_path / "data" / "t"
    directory.mkdir(parents=True)
    pq.write_table(pa.table({"x": [1, 2, 3]}), directory / "t.parquet")
    return directory.parent


@pytest.fixture
def duckdb(data: Path, tmp_path: Path) -> Iterator[EngineProcess]:
    process = EngineProcess("duckdb", data, tmp_path / "home")
    yield process
    process.end()


def answer_of(process: EngineProcess) -> object:
    with pa.OSFile(str(process.answer_path)) as file, pa.ipc.open_file(file) as reader:
        return reader.read_all().to_pylist()


def child_of_this_process() -> psutil.Process:
    (found,) = [each for each in psutil.Process().children() if "benchmarks.all.serve" in each.cmdline()]
    return found


def test_an_answer_has_its_time_its_memory_and_its_rows(duckdb: EngineProcess) -> None:
    answer = duckdb.ask("duckdb", QUERY, LONG)
    assert 0 < answer["seconds"] < LONG
    assert duckdb.peak_bytes > 10_000_000  # a Python with DuckDB in it
    assert answer["shuffled_bytes"] is None
    assert answer_of(duckdb) == [{"s": 6}]


def test_a_query_that_fails_leaves_the_process_as_it_is(duckdb: EngineProcess) -> None:
    duckdb.start()
    before = child_of_this_process()
    with pytest.raises(NotAnsweredError, match=r"CatalogException: .*nowhere"):
        duckdb.ask("duckdb", "select * from nowhere", LONG)
    assert duckdb.ask("duckdb", QUERY, LONG)["rows"] == 1
    assert child_of_this_process() == before


def test_a_query_that_takes_too_long_is_ended_and_the_next_one_answered(duckdb: EngineProcess) -> None:
    duckdb.start()
    before = child_of_this_process()
    with pytest.raises(NotAnsweredError, match=r"no answer within 0\.2 s"):
        duckdb.ask("duckdb", ENDLESS, 0.2)
    assert duckdb.peak_bytes > 10_000_000
    assert not before.is_running()
    assert duckdb.ask("duckdb", QUERY, LONG)["rows"] == 1


def test_a_process_that_ended_meanwhile_is_started_again(duckdb: EngineProcess) -> None:
    duckdb.start()
    before = child_of_this_process()
    before.kill()
    os.waitid(os.P_PID, before.pid, os.WEXITED | os.WNOWAIT)
    assert duckdb.ask("duckdb", QUERY, LONG)["rows"] == 1


def test_a_process_that_ends_within_a_query_has_not_answered(data: Path, tmp_path: Path) -> None:
    process = EngineProcess("polars", data, tmp_path / "home")
    try:
        process.start()
        child_of_this_process().send_signal(signal.SIGKILL)
        with pytest.raises(NotAnsweredError, match="its process ended with status -9"):
            process._read_line(LONG)
    finally:
        process.end()


def test_a_process_that_cannot_start_says_so_each_time(data: Path, tmp_path: Path) -> None:
    process = EngineProcess("sail", data, tmp_path / "home", tmp_path / "no-python")
    for _ in range(2):
        with pytest.raises(NotAnsweredError, match=r"it did not start: .*no-python"):
            process.ask("sail", QUERY, LONG)


def test_an_engine_that_does_not_answer_is_counted_and_not_asked_again(data: Path, tmp_path: Path) -> None:
    engines = [BY_NAME[BASE], BY_NAME["sail"], BY_NAME["duckdb"]]
    said: list[str] = []
    with engine_processes(engines, data, tmp_path / "home", {"sail": tmp_path / "no-python"}) as processes:
        run = SuiteRun(SuiteResult("tpch", 1), data, engines, processes, said.append)
        run.start(LONG)
        run.measure(7, QUERY, rounds=2, seconds=LONG)
    assert any(line.startswith("sail failed: it did not start") for line in said)
    assert said.count("  sail FAILED") == 1
    assert run.result.asked == [7]
    measured = {each.engine: each for each in run.result.measured}
    assert [len(measured[name].seconds) for name in (BASE, "sail", "duckdb")] == [2, 0, 2]
    assert (measured["sail"].answered, measured["sail"].error) == (False, measured["sail"].error)
    assert "it did not start" in (measured["sail"].error or "")
    assert measured["duckdb"].equal is True


def test_a_different_answer_is_found(data: Path, tmp_path: Path) -> None:
    engines = [BY_NAME[BASE], BY_NAME["duckdb"]]
    with engine_processes(engines, data, tmp_path / "home", {}) as processes:
        run = SuiteRun(SuiteResult("tpch", 1), data, engines, processes, lambda text: None)
        run.measure(1, "select x / 2 as half from t", rounds=1, seconds=LONG)  # DuckDB divides integers to a float
    found = run.result.find(1, "duckdb")
    assert found is not None
    assert (found.answered, found.equal, found.counts) == (True, False, False)
    assert found.note


def test_the_largest_process_is_ended_and_started_again_if_memory_is_short(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.all.measure._WORTH_ENDING", 1)
    engines = [BY_NAME[BASE], BY_NAME["duckdb"]]
    short = iter([True, False])
    with engine_processes(engines, data, tmp_path / "home", {}) as processes:
        run = SuiteRun(SuiteResult("tpch", 1), data, engines, processes, lambda text: None, lambda: next(short))
        processes["duckdb"].start()
        before = child_of_this_process()
        assert processes[BASE].resident_bytes == 0
        run.measure(1, QUERY, rounds=1, seconds=LONG)
        assert not before.is_running()
    assert run.result.restarts == ["duckdb"]
    assert [(each.answered, each.equal) for each in run.result.measured] == [(True, True)] * 2


def test_no_process_is_ended_if_others_hold_the_memory(data: Path, tmp_path: Path) -> None:
    engines = [BY_NAME[BASE]]
    with engine_processes(engines, data, tmp_path / "home", {}) as processes:
        run = SuiteRun(SuiteResult("tpch", 1), data, engines, processes, lambda text: None, lambda: True)
        run.measure(1, QUERY, rounds=1, seconds=LONG)
    assert run.result.restarts == []
    assert run.result.measured[0].answered
