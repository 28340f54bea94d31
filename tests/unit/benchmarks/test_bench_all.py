"""`make bench-all` from its arguments to its report, small."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.all.__main__ import main, parse_arguments
from benchmarks.all.result import BenchmarkRun, summarize
from sparkfusion.bench.tpc import TPCH

SCALE = 0.01
ROOT = Path(__file__).parents[3]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with generated tables."""
    monkeypatch.chdir(tmp_path)
    return TPCH.prepare(SCALE)


@pytest.mark.long
def test_a_small_run_compares_measures_and_reports(data: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    arguments = ["--scales", f"tpch:{SCALE}", "--engines", "local,duckdb", "--queries", "1,6", "--results"]
    assert main([*arguments, str(results)]) == 0
    run = BenchmarkRun.read(results / "all.json")
    assert run.ended == "finished"
    assert run.engines == ["datafusion", "local", "duckdb"]
    (suite,) = run.suites
    assert suite.asked == [1, 6]
    for engine in run.engines:
        summary = summarize(suite, engine)
        assert (summary.answered, summary.asked, summary.different, summary.undecided) == (2, 2, 0, 0)
        assert summary.peak_bytes > 10_000_000
        assert all(len(each.seconds) == 2 for each in suite.of(engine))
        assert len(suite.ratios(engine)) == 2
    assert [each.shuffled_bytes is None for each in suite.of("local")] == [False, False]
    assert run.facts["versions"]["datafusion"]
    assert "| q6 | " in (results / "all.md").read_text()
    assert (results / "all.svg").read_text().count("<circle ") == 4


@pytest.mark.long
def test_ctrl_c_writes_what_was_measured(data: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    command = [sys.executable, "-m", "benchmarks.all", "--scales", f"tpch:{SCALE}", "--engines", "duckdb"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(ROOT)])}
    with subprocess.Popen(
        [*command, "--rounds", "1000", "--results", str(results)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any("q1 round 2" in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        process.stdout.read()
    assert process.returncode == 130
    run = BenchmarkRun.read(results / "all.json")
    assert run.ended == "interrupted"
    assert len(run.suites[0].of("duckdb")[0].seconds) >= 2
    assert "interrupted" in (results / "all.md").read_text()


def test_scales_name_suites(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_arguments([]).scales == [("tpch", 1.0), ("tpch", 10.0), ("tpcds", 1.0)]
    assert parse_arguments(["--scales", "0.1,tpcds:1"]).scales == [("tpch", 0.1), ("tpcds", 1.0)]
    with pytest.raises(SystemExit):
        parse_arguments(["--scales", "tpcx:1"])
    assert "the suites are tpch, tpcds" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        parse_arguments(["--engines", "oracle"])
    assert "there is no engine 'oracle'" in capsys.readouterr().err


def test_an_unknown_query_is_refused_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(["--scales", "1,tpcds:1", "--queries", "1,23"])
    assert "--queries 1,23: TPC-H has no query '23'" in capsys.readouterr().err
