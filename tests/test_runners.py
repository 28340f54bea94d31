"""Which test runs on which runner, and in which order."""

from __future__ import annotations

import re

import pytest

from tests import leaks
from tests.runners import BEHAVIOUR, NAMED_FILES, SPARK
from tests.suites.inner_run import Run

FILE = """
import sys

import pytest

@pytest.fixture(scope="module")
def session(connect_shared):
    return connect_shared()

def test_shared(session):
    assert "pyspark" not in sys.modules

def test_all(connect):
    assert connect().sql("select 1 as one").to_pylist() == [{"one": 1}]

@pytest.mark.runners("spark-local", "local", reason="an example")
def test_some(connect):
    assert "pyspark" not in sys.modules

def test_spark(spark):
    pass

def test_none():
    pass
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(pytester, monkeypatch)


def collected(run: Run, *arguments: str) -> list[str]:
    lines = run.collect(FILE, *arguments).stdout.str().splitlines()
    return [line.split("::")[1] for line in lines if "::" in line]


def test_one_runner_comes_after_the_other_and_spark_last(run: Run) -> None:
    assert collected(run) == [
        "test_none",
        "test_shared[local]",
        "test_all[local]",
        "test_some[local]",
        "test_shared[flight]",
        "test_all[flight]",
        "test_spark",
        "test_shared[spark-local]",
        "test_all[spark-local]",
        "test_some[spark-local]",
        *(f"{name}[{runner}]" for runner in SPARK[1:3] for name in ("test_shared", "test_all")),
    ]


def test_an_id_chooses_its_runner(run: Run) -> None:
    assert collected(run, "-k", "spark-shared") == ["test_shared[spark-shared]", "test_all[spark-shared]"]
    found = collected(run, "-k", "not spark")
    local = ["test_none", "test_shared[local]", "test_all[local]", "test_some[local]"]
    assert found == [*local, "test_shared[flight]", "test_all[flight]"]


def test_what_is_no_sample_is_long(run: Run) -> None:
    short = collected(run, "-m", "not long")
    assert [name for name in short if "all" in name] == ["test_all[local]", "test_all[flight]"]
    sampled = "import pytest\n@pytest.mark.sample('local', 'spark-local')\ndef test_all(connect): pass"
    lines = run.collect(sampled, "-m", "not long").stdout.str()
    assert "test_all[spark-local]" in lines
    assert "2/5 tests collected" in lines


def test_no_jvm_is_started_where_none_is_needed(run: Run) -> None:
    run(FILE, "-k", "not spark and not flight").assert_outcomes(passed=4)


@pytest.mark.parametrize("arguments", ["'local'", "'sparc', reason='no such runner'", "reason='no names'"])
def test_a_mark_names_runners_and_a_reason(run: Run, arguments: str) -> None:
    result = run.collect(f"import pytest\n@pytest.mark.runners({arguments})\ndef test_marked(connect): pass")
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*test_marked: @pytest.mark.runners: *"])


def test_looking_up_tests_leaves_the_leak_check_as_it_is(pytester: pytest.Pytester) -> None:
    before = leaks.PATIENCE
    with pytest.MonkeyPatch.context() as inner:
        Run(pytester, inner).collect(FILE)
    assert before == leaks.PATIENCE


def test_samples_are_of_files_that_exist() -> None:
    assert {path.name for path in BEHAVIOUR.rglob("test_*.py")} >= NAMED_FILES


def test_what_is_decided_before_a_task_starts_runs_in_process_and_on_workers(pytester: pytest.Pytester) -> None:
    root = BEHAVIOUR.parents[1]
    arguments = (
        f"--rootdir={root}",
        "-c",
        f"{root}/pyproject.toml",
        "--collect-only",
        "-q",
        f"{BEHAVIOUR}/test_depth.py",
    )
    found = {
        mark: set(re.findall(r"\[([a-z-]+)-", pytester.runpytest_inprocess(*arguments, "-m", mark).stdout.str()))
        for mark in ("long", "not long")
    }
    assert found == {"long": {"flight"}, "not long": {"local"}}
