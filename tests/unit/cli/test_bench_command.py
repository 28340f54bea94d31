from __future__ import annotations

import json
import os
import signal
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

import sparkfusion
from sparkfusion.bench import tpch_bench
from sparkfusion.bench.tpc import TPCH, Suite
from sparkfusion.runner.local import LocalRunner
from tests.unit.cli.conftest import Invoke

SMALL = ("bench", "--scale", "0.001", "--queries", "6,1", "--rounds", "1", "-s", "sparkfusion.bytes_per_partition=1")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """`--data` with tables at scale factor 0.001."""
    directory = tmp_path_factory.mktemp("data")
    TPCH.prepare(0.001, directory, lambda text: None)
    return str(directory)


def test_times_ratios_and_answers_are_printed_and_written(invoke: Invoke, data: str, tmp_path: Path) -> None:
    result = invoke(*SMALL, "--data", data, "--json", str(tmp_path / "times.json"))
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "TPC-H, scale factor 0.001, in process; seconds, one round"
    assert [line.split()[0] for line in lines[2:6]] == ["q6", "q1", "total", "mean"]
    assert lines[2].endswith("1      1  equal")
    assert lines[-1] == "Answers: all equal."
    assert "generating" not in result.stderr
    written = json.loads((tmp_path / "times.json").read_text())
    assert [(query["query"], query["tasks"]) for query in written["queries"]] == [(6, 1), (1, 1)]
    assert written["complete"]
    assert written["answers_equal"]
    times = written["queries"][0]["engines"]
    assert set(times) == {"single_node", "sparkfusion"}
    ratio = times["sparkfusion"]["seconds"][0] / times["single_node"]["seconds"][0]
    assert written["queries"][0]["ratios"]["single_node"] == pytest.approx(ratio)


def test_without_a_directory_the_tables_are_temporary(invoke: Invoke) -> None:
    before = sorted(Path(tempfile.gettempdir()).iterdir())
    result = invoke("bench", "--scale", "0.001", "--queries", "6", "--rounds", "1")
    assert result.exit_code == 0, result.output
    assert f"in {tempfile.gettempdir()}/sparkfusion-" in result.stderr
    assert "Not distributed: 1 of 1 queries." in result.stdout
    assert sorted(Path(tempfile.gettempdir()).iterdir()) == before


def test_a_different_answer_is_a_failure(invoke: Invoke, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparkfusion.DataFrame, "collect", lambda self: pa.table({"revenue": [1.0]}))
    result = invoke(*SMALL, "--data", data)
    assert result.exit_code == 1, result.output
    assert "DIFFERENT" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("Answers: NOT ALL EQUAL")


def test_ctrl_c_keeps_what_was_measured(
    invoke: Invoke, data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = tpch_bench.TpchBench.measure

    def press(self: tpch_bench.TpchBench, number: int, *rest: object) -> object:
        if number == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return measure(self, number, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(tpch_bench.TpchBench, "measure", press)
    result = invoke(*SMALL, "--data", data, "--json", str(tmp_path / "times.json"))
    assert result.exit_code == 130, result.output
    assert result.stderr.splitlines()[-1] == "sparkfusion: cancelled"
    assert result.stdout.splitlines()[-1] == "Stopped after 1 of 2 queries."
    written = json.loads((tmp_path / "times.json").read_text())
    assert ([query["query"] for query in written["queries"]], written["complete"]) == ([6], False)


def test_a_directory_that_tasks_do_not_reach_is_refused_before_tables_are_made(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalRunner, "reaches", lambda self, directory: False)
    result = invoke(*SMALL, "--data", str(tmp_path))
    assert result.exit_code == 1
    assert f"the TPC-H tables cannot be in '{tmp_path}'" in result.stderr
    assert "hint: give --data" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--queries", "23"), "TPC-H has no query '23'"),
        (("--json", "missing/times.json"), "cannot write 'missing/times.json'"),
        (("--data", "/dev/null/data"), "the TPC-H tables cannot be written to '/dev/null/data'"),
    ],
)
def test_what_cannot_work_is_told_before_anything_runs(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.setattr(Suite, "generate", lambda *_, **__: pytest.fail("tables are generated"))
    result = invoke("bench", *arguments)
    assert result.exit_code == 1, result.output
    assert words in result.stderr


def test_tables_of_the_users_own_session_are_not_replaced(data: str) -> None:
    with sparkfusion.connect() as session:
        session.from_pydict({"x": [1]}, name="orders")
        with pytest.raises(sparkfusion.UserError, match="the session has tables named orders"):
            tpch_bench.run_tpch(session, scale=0.001, queries="6", data=data)
        session.deregister_table("orders")
        assert tpch_bench.run_tpch(session, scale=0.001, queries="6", rounds=1, data=data).is_right
        assert not session.table_exist("lineitem")
